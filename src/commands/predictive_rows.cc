#include "commands/predictive_rows.h"

#include <fmt/format.h>

#include <utility>

#include "diagnostics/simulated_successes.h"
#include "nrec/commands/simulate.h"
#include "nrec/core/error.h"
#include "nrec/core/random.h"
#include "nrec/io/npz.h"
#include "nrec/simulation/rows_at.h"

namespace nrec {

bool has_own_simulator(const Problem& problem) {
  return !problem.simulations.command.empty() || !problem.simulations.library.empty();
}

PredictiveRows::PredictiveRows(const Problem& problem, const Prior& prior, std::size_t dim_x,
                               std::size_t num_rows, const RunContext& run)
    : problem_(problem), simulator_(problem, prior, run.seed), dim_theta_(prior.dim()) {
  std::optional<Record> stored = stored_settings(campaign_folder(problem));
  // What a campaign knows of another program does not count.
  if (stored && std::get<std::string>(*stored->find("simulator_hash")) != simulator_.hash()) stored.reset();
  simulator_.prepare(stored, prior, run.seed, run, num_rows, worker_count(problem, run));
  if (simulator_.x_shape().empty() || simulator_.dim_x() == dim_x) return;
  throw ShapeError(
      fmt::format("{}: makes {} numbers but the estimator was trained on {} data; name the problem that it "
                  "was trained on",
                  simulator_.name(), simulator_.dim_x(), dim_x));
}

void predict_with(PredictiveRows* rows, std::int64_t num_predicted, CheckData& data,
                  FullCheckOptions& options) {
  if (num_predicted > 0) options.num_predicted = static_cast<std::size_t>(num_predicted);
  if (!rows) return;
  data.simulate = rows->maker();
  options.num_predicted = PredictiveRows::count(num_predicted);
}

DataMaker PredictiveRows::maker() {
  return [this](MatrixView<const double> theta, std::uint64_t first_row, const RunContext& run) {
    return simulate(theta, first_row, run);
  };
}

Matrix<double> PredictiveRows::simulate(MatrixView<const double> theta, std::uint64_t first_row,
                                        const RunContext& run) {
  const double observation = num_observations_++;
  if (simulator_.x_shape().empty()) return {};  // stopped while it was tried
  if (observation == 0.0)
    run.log.info(fmt::format("simulating {} rows at the posterior with {}", theta.rows, simulator_.name()));
  const std::uint64_t seed = RandomStream(run.seed, Stream::check, first_row).bits64();
  RowsAt found = simulate_at(
      theta, simulator_.dim_x(), [&] { return simulator_.make_runner(seed); },
      {.seed = seed, .workers = worker_count(problem_, run), .rows_per_call = simulator_.rows_per_call()},
      run);
  SimulationSet& set = found.set;
  theta_.insert(theta_.end(), set.theta.values().begin(), set.theta.values().end());
  x_.insert(x_.end(), set.x.values().begin(), set.x.values().end());
  for (const RowStatus status : set.status) status_.push_back(static_cast<double>(status));
  observation_.insert(observation_.end(), set.num_rows(), observation);
  Matrix<double> succeeded = successful_rows(std::move(set.x), set.status);
  if (const std::size_t failed = set.num_rows() - succeeded.rows(); failed > 0) {
    num_failed_ += failed;
    run.log.warning(fmt::format("{} of {} simulations at posterior draws failed, the first of them {}",
                                failed, set.num_rows(), found.first_failure));
  }
  return succeeded;
}

void PredictiveRows::write(const OutputFolder& folder) const {
  const std::size_t rows = status_.size();
  if (rows == 0) return;
  NumericArray x = {.shape = {rows}, .values = x_};
  x.shape.insert(x.shape.end(), simulator_.x_shape().begin(), simulator_.x_shape().end());
  write_npz(folder.file(files::kPredictive), {{"theta", {.shape = {rows, dim_theta_}, .values = theta_}},
                                              {"x", std::move(x)},
                                              {"status", {.shape = {rows}, .values = status_}},
                                              {"observation", {.shape = {rows}, .values = observation_}}});
}

Record PredictiveRows::record() const {
  Record record;
  record.set("predictive.simulator", simulator_.name());
  record.set("predictive.simulator_hash", simulator_.hash());
  record.set("predictive.simulated", status_.size());
  record.set("predictive.failed", num_failed_);
  return record;
}

}  // namespace nrec
