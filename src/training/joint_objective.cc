#include "training/joint_objective.h"

#include <algorithm>
#include <string>

#include "nrec/core/error.h"
#include "nrec/core/random.h"
#include "nrec/training/contrastive_batch.h"
#include "training/encode_theta.h"

namespace nrec {

JointObjective::JointObjective(const Prior& prior, const Simulator& simulator, const TrainingData& data,
                               std::int64_t steps_per_epoch, const RunContext& run)
    : prior_(prior),
      simulator_(simulator),
      data_(data),
      steps_per_epoch_(steps_per_epoch),
      run_(run),
      validation_(data, run.seed),
      theta_(data.batch_size, prior.dim()),
      x_(data.batch_size, data.x.cols()),
      status_(data.batch_size),
      encoded_theta_(data.batch_size, prior.dim()),
      encoded_x_(data.batch_size, data.x.cols()),
      candidates_(data.batch_size, data.loss.num_columns()) {
  if (simulator.dim_theta() == prior.dim() && simulator.dim_x() == data.x.cols()) return;
  throw ShapeError("train: the simulator of regime = \"joint\" takes " +
                   std::to_string(simulator.dim_theta()) + " parameters and makes " +
                   std::to_string(simulator.dim_x()) + " data, but the simulations have " +
                   std::to_string(prior.dim()) + " and " + std::to_string(data.x.cols()) +
                   "; both must come from the same simulator");
}

PairBatch JointObjective::load_batch(std::int64_t step) {
  const std::uint64_t first =
      data_.theta.rows() + static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(data_.batch_size);
  prior_.sample(run_.seed, Stream::prior, first, theta_);
  simulate_rows(simulator_, run_.seed, first, theta_, x_, status_, run_.pool);
  const auto failed = std::ranges::find_if(status_, [](RowStatus s) { return s != RowStatus::ok; });
  if (failed != status_.end()) {
    throw DomainError(
        "train: simulation " + std::to_string(first + static_cast<std::uint64_t>(failed - status_.begin())) +
        ", made during training, ended as \"" + std::string(row_status_name(*failed)) +
        "\"; regime = \"joint\" needs a simulator that never fails: use regime = \"fixed\" with "
        "failures = \"model\"");
  }
  encode_theta(prior_, data_.theta_standardiser, theta_, encoded_theta_, run_.pool);
  data_.x_standardiser.apply(x_, encoded_x_);
  RandomStream random(run_.seed, Stream::contrast, static_cast<std::uint64_t>(step));
  fill_candidates(data_.loss, 0, data_.batch_size, random, candidates_);
  return {encoded_theta_, encoded_x_, candidates_};
}

}  // namespace nrec
