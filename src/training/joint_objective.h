#pragma once

#include "nrec/core/run_context.h"
#include "nrec/simulation/simulator.h"
#include "training/objective.h"
#include "training/training_data.h"
#include "training/validation.h"

namespace nrec {

/// Errors   UnsupportedError: no simulator; ShapeError: it has other dimensions than the simulations
void check_joint_simulator(const Simulator* simulator, std::size_t dim_theta, std::size_t dim_x);

/// Rows of a campaign that are made for a mini-batch.
struct JointRows {
  Matrix<double> theta, x;

  JointRows(std::size_t rows, std::size_t dim_theta, std::size_t dim_x);
  /// Rows first, first + 1, ... of the campaign with the seed of `run`. Errors   DomainError: a row failed
  void simulate(const Prior& prior, const Simulator& simulator, std::uint64_t first, const RunContext& run);

 private:
  std::vector<RowStatus> status_;
};

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
  EpochRecord measure(PairNetworkStep& step, const PairNetwork& network, bool information) override {
    return validation_.measure(step, network, information);
  }

 private:
  const Prior& prior_;
  const Simulator& simulator_;
  const TrainingData& data_;
  std::int64_t steps_per_epoch_;
  const RunContext& run_;
  Validation validation_;
  JointRows rows_;  // of the present batch
  Matrix<float> encoded_theta_, encoded_x_;
  Matrix<std::uint32_t> candidates_;
};

}  // namespace nrec
