#include "commands/run_check.h"

#include "nrec/diagnostics/full_check.h"

namespace nrec {

namespace {

/// What the full check does better, item by item and number by number.
bool is_replaced(std::string_view name) {
  return name.starts_with("coverage") || name.starts_with("normalisation") || name.starts_with("verdict") ||
         name == "seconds";
}

}  // namespace

CheckReport check_of_run(const SamplingStage& stage, std::span<const PosteriorDraws> draws,
                         const RunContext& run) {
  CheckReport quick = quick_check(stage.estimator, {stage.observation.x_o, draws}, stage.held_out_theta,
                                  stage.held_out_x, run);
  if (stage.check.level != "full" || run.stop_requested()) return quick;
  CheckData data{.theta = stage.held_out_theta, .x = stage.held_out_x, .simulator = stage.simulator};
  if (stage.observation.x_o.rows() == 1) {
    data.x_o = stage.observation.x_o.row(0);
    if (stage.sampling.fix.empty())
      data.at_observation = Posterior::from_estimator(stage.estimator, data.x_o, run);
  }
  for (CheckItem& item : quick.items) {
    if (!is_replaced(item.name)) data.items.push_back(std::move(item));
  }
  for (const auto& [name, value] : quick.record.entries()) {
    if (!is_replaced(name)) data.record.set(name, value);
  }
  return full_check(checked_ratio(stage.estimator, data.x), data, {}, run);
}

}  // namespace nrec
