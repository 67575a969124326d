#include "commands/run_check.h"

#include <algorithm>

#include "nrec/diagnostics/full_check.h"

namespace nrec {

namespace {

/// What the full check does better, item by item and number by number.
bool is_replaced(std::string_view name) {
  return name.starts_with("coverage") || name.starts_with("normalisation") || name.starts_with("verdict") ||
         name.starts_with("independent rows") || name.starts_with("iid.") || name == "seconds";
}

/// About `count` of the draws, spread evenly over them.
PosteriorDraws every_nth(const PosteriorDraws& draws, std::size_t count) {
  PosteriorDraws chosen;
  chosen.status = draws.status;
  chosen.message = draws.message;
  const std::size_t step = std::max<std::size_t>(1, draws.size() / count),
                    rows = std::min(count, draws.size());
  chosen.theta = Matrix<double>(rows, draws.theta.cols());
  for (std::size_t k = 0; k < rows; ++k) {
    std::ranges::copy(draws.theta.row(k * step), chosen.theta.row(k).begin());
    chosen.log_ratio.push_back(draws.log_ratio[k * step]);
  }
  return chosen;
}

}  // namespace

CheckReport check_of_run(const SamplingStage& stage, std::span<const PosteriorDraws> draws,
                         const RunContext& run) {
  CheckReport quick = quick_check(stage.estimator, {stage.observation.x_o, draws}, stage.held_out_theta,
                                  stage.held_out_x, run);
  if (stage.check.level != "full" || run.stop_requested()) return quick;
  CheckData data{.theta = stage.held_out_theta, .x = stage.held_out_x, .simulator = stage.simulator};
  data.x_o = stage.observation.x_o;
  data.has_iid_rows = stage.observation.rows == ObservationRows::iid;
  FullCheckOptions settings;
  predict_with(stage.predictive, stage.check.num_predicted, data, settings);
  data.draws = [&](std::size_t i, std::size_t count, const RunContext&) {
    return every_nth(draws[i], count);
  };
  for (CheckItem& item : quick.items) {
    if (!is_replaced(item.name)) data.items.push_back(std::move(item));
  }
  for (const auto& [name, value] : quick.record.entries()) {
    if (!is_replaced(name)) data.record.set(name, value);
  }
  CheckReport report = full_check(checked_ratio(stage.estimator, data.x, run.pool), data, settings, run);
  if (stage.predictive) {
    stage.predictive->write(stage.folder);
    report.record.merge("", stage.predictive->record());
  }
  return report;
}

}  // namespace nrec
