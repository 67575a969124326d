#pragma once

#include "nrec/core/run_context.h"
#include "nrec/simulation/simulator.h"
#include "training/objective.h"
#include "training/training_data.h"
#include "training/validation.h"

namespace nrec {

/// The contrastive loss of simulations that are made for every mini-batch; contrastive thetas are those of its other rows.
/// Source   [Miller2022, sec. 2.4]
class JointObjective final : public Objective {
 public:
  /// All must outlive it. New rows are numbered behind those of `data`. Errors   ShapeError: dimensions of the simulator
  JointObjective(const Prior& prior, const Simulator& simulator, const TrainingData& data,
                 std::int64_t steps_per_epoch, const RunContext& run);

  std::int64_t steps_per_epoch() const override { return steps_per_epoch_; }
  /// Errors   DomainError: a row failed
  PairBatch load_batch(std::int64_t step) override;
  RowLoss row_loss() const override { return contrastive_row_loss(data_.loss); }
  EpochRecord measure(PairNetworkStep& step, const PairNetwork& network) override {
    return validation_.measure(step, network);
  }

 private:
  const Prior& prior_;
  const Simulator& simulator_;
  const TrainingData& data_;
  std::int64_t steps_per_epoch_;
  const RunContext& run_;
  Validation validation_;
  Matrix<double> theta_, x_;  // of the present batch
  std::vector<RowStatus> status_;
  Matrix<float> encoded_theta_, encoded_x_;
  Matrix<std::uint32_t> candidates_;
};

}  // namespace nrec
