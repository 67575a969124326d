#pragma once

#include "nrec/core/run_context.h"
#include "nrec/priors/prior.h"
#include "training/objective.h"
#include "training/training_data.h"
#include "training/validation.h"

namespace nrec {

/// Contrastive thetas that a row needs when none is shared with other rows: K, of which both terms take theirs.
std::size_t fresh_thetas_per_row(const ContrastiveLoss& loss);

/// Candidates of rows 0, 1, ... whose contrastive thetas stand in a list behind the own ones: column 0 is the own theta, row b.
///
/// Shared contrast sets: row b takes entries b K, ..., b K + K - 1 of `order`. Independent ones: the joint term takes the first
/// K - 1 of them, the marginal term those of `other_order`. Entries are numbers of listed thetas; `first` is added.
///
/// Shapes   order, other_order [>= B K] (other_order is used by independent sets only); candidates [B, loss.num_columns()] out
void fill_listed_candidates(const ContrastiveLoss& loss, std::size_t first,
                            std::span<const std::uint32_t> order, std::span<const std::uint32_t> other_order,
                            Matrix<std::uint32_t>& candidates);

/// The contrastive loss of simulations whose contrastive thetas are drawn from the prior for every mini-batch.
/// Source   [Miller2022, sec. 2.4]
class PriorObjective final : public Objective {
 public:
  /// All must outlive it.
  PriorObjective(const Prior& prior, const TrainingData& data, const RunContext& run);

  std::int64_t steps_per_epoch() const override { return order_.steps_per_epoch(); }
  PairBatch load_batch(std::int64_t step) override;
  RowLoss row_loss() const override { return contrastive_row_loss(data_.loss); }
  EpochRecord measure(PairNetworkStep& step, const PairNetwork& network, bool information) override {
    return validation_.measure(step, network, information);
  }

 private:
  const Prior& prior_;
  const TrainingData& data_;
  const RunContext& run_;
  EpochOrder order_;
  Validation validation_;
  Matrix<double> fresh_;     // [B K, D] thetas from the prior
  Matrix<float> theta_, x_;  // [B + B K, D], [B, M] of the present batch
  std::vector<std::uint32_t> permutation_, other_permutation_;
  Matrix<std::uint32_t> candidates_;
};

}  // namespace nrec
