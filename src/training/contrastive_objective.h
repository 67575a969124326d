#pragma once

#include "training/objective.h"
#include "training/training_data.h"
#include "training/validation.h"

namespace nrec {

/// The contrastive loss of simulations, whose contrastive thetas are those of the other rows of a mini-batch.
class ContrastiveObjective final : public Objective {
 public:
  /// `data` must outlive it.
  ContrastiveObjective(const TrainingData& data, std::uint64_t seed);

  std::int64_t steps_per_epoch() const override { return order_.steps_per_epoch(); }
  PairBatch load_batch(std::int64_t step) override;
  RowLoss row_loss() const override { return contrastive_row_loss(data_.loss); }
  EpochRecord measure(PairNetworkStep& step, const PairNetwork& network, bool information) override {
    return validation_.measure(step, network, information);
  }

 private:
  const TrainingData& data_;
  std::uint64_t seed_;
  EpochOrder order_;
  Validation validation_;
  Matrix<float> theta_, x_;  // of the present batch
  Matrix<std::uint32_t> candidates_;
};

}  // namespace nrec
