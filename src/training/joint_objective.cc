#include "training/joint_objective.h"

#include <algorithm>
#include <string>

#include "nrec/core/error.h"
#include "nrec/core/random.h"
#include "nrec/training/contrastive_batch.h"
#include "training/encode_theta.h"

namespace nrec {

void check_joint_simulator(const Simulator* simulator, std::size_t dim_theta, std::size_t dim_x) {
  if (!simulator) {
    throw UnsupportedError(
        "train: regime = \"joint\" makes new simulations for every mini-batch and needs a simulator that "
        "nrec "
        "can call itself, a built-in task or one given to train(); use regime = \"fixed\" or \"prior\" for "
        "simulations from files and external programs");
  }
  if (simulator->dim_theta() == dim_theta && simulator->dim_x() == dim_x) return;
  throw ShapeError("train: the simulator of regime = \"joint\" takes " +
                   std::to_string(simulator->dim_theta()) + " parameters and makes " +
                   std::to_string(simulator->dim_x()) + " data, but the simulations have " +
                   std::to_string(dim_theta) + " and " + std::to_string(dim_x) +
                   "; both must come from the same simulator");
}

JointRows::JointRows(std::size_t rows, std::size_t dim_theta, std::size_t dim_x)
    : theta(rows, dim_theta), x(rows, dim_x), status_(rows) {}

void JointRows::simulate(const Prior& prior, const Simulator& simulator, std::uint64_t first,
                         const RunContext& run) {
  prior.sample(run.seed, Stream::prior, first, theta);
  simulate_rows(simulator, run.seed, first, theta, x, status_, run.pool);
  const auto failed = std::ranges::find_if(status_, [](RowStatus s) { return s != RowStatus::ok; });
  if (failed == status_.end()) return;
  throw DomainError("train: simulation " +
                    std::to_string(first + static_cast<std::uint64_t>(failed - status_.begin())) +
                    ", made during training, ended as \"" + std::string(row_status_name(*failed)) +
                    "\"; regime = \"joint\" needs a simulator that never fails: use regime = \"fixed\" with "
                    "failures = \"model\"");
}

JointObjective::JointObjective(const Prior& prior, const Simulator& simulator, const TrainingData& data,
                               std::int64_t steps_per_epoch, const RunContext& run)
    : prior_(prior),
      simulator_(simulator),
      data_(data),
      steps_per_epoch_(steps_per_epoch),
      run_(run),
      validation_(data, run.seed),
      rows_(data.batch_size, prior.dim(), data.x.cols()),
      encoded_theta_(data.batch_size, prior.dim()),
      encoded_x_(data.batch_size, data.x.cols()),
      candidates_(data.batch_size, data.loss.num_columns()) {
  check_joint_simulator(&simulator, prior.dim(), data.x.cols());
}

PairBatch JointObjective::load_batch(std::int64_t step) {
  const std::uint64_t first =
      data_.theta.rows() + static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(data_.batch_size);
  rows_.simulate(prior_, simulator_, first, run_);
  encode_theta(prior_, data_.theta_standardiser, rows_.theta, encoded_theta_, run_.pool);
  data_.x_standardiser.apply(rows_.x, encoded_x_);
  RandomStream random(run_.seed, Stream::contrast, static_cast<std::uint64_t>(step));
  fill_candidates(data_.loss, 0, data_.batch_size, random, candidates_);
  return {encoded_theta_, encoded_x_, candidates_};
}

}  // namespace nrec
