#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nrec/losses/contrastive_loss.h"
#include "nrec/networks/pair_step.h"
#include "nrec/training/ratio_estimator.h"

namespace nrec {

/// What a Trainer works on: mini-batches, the loss of their rows, and the measure of an epoch.
class Objective {
 public:
  virtual ~Objective() = default;

  virtual std::int64_t steps_per_epoch() const = 0;
  /// The mini-batch of a step, counted from the start of training: a pure function of the step. The views live until
  /// the next call.
  virtual PairBatch load_batch(std::int64_t step) = 0;
  /// Of the rows of the batch that was loaded last.
  virtual RowLoss row_loss() const = 0;
  /// Everything of an EpochRecord but training_loss, on the rows that are held out; without `information` the numbers on Z(x) are
  /// nan.
  virtual EpochRecord measure(PairNetworkStep& step, const PairNetwork& network, bool information) = 0;
};

/// The loss of a row of logits of contrastive pairs. `loss` must outlive it.
RowLoss contrastive_row_loss(const ContrastiveLoss& loss);

/// Row numbers in a new random order every epoch, cut into mini-batches; an incomplete last one is left out.
class EpochOrder {
 public:
  /// `rows` must outlive it.
  EpochOrder(const std::vector<std::uint32_t>& rows, std::size_t batch_size, std::uint64_t seed)
      : rows_(rows), batch_size_(batch_size), seed_(seed) {}

  std::int64_t steps_per_epoch() const { return static_cast<std::int64_t>(rows_.size() / batch_size_); }
  /// The rows of the mini-batch of a step, a pure function of (seed, step).
  std::span<const std::uint32_t> batch(std::int64_t step);

 private:
  const std::vector<std::uint32_t>& rows_;
  std::size_t batch_size_;
  std::uint64_t seed_;
  std::vector<std::uint32_t> order_;  // in the present epoch
  std::int64_t epoch_ = -1;
};

/// Rows `rows` of `all`, in their order, into the first rows of `picked`.
void gather_rows(const Matrix<float>& all, std::span<const std::uint32_t> rows, Matrix<float>& picked);

}  // namespace nrec
