#pragma once

#include <cstdint>
#include <vector>

#include "nrec/priors/prior.h"
#include "nrec/simulation/simulation_set.h"
#include "nrec/training/success_model.h"
#include "training/objective.h"

namespace nrec {

/// All rows of a set, successes first, as the success network sees them: checked, split, standardised, in float32.
struct SuccessData {
  static constexpr std::size_t kLeastOfEachKind =
      20;  // fewer failures or successes say nothing about where they are

  std::size_t num_ok = 0, num_failed = 0;
  Matrix<float> theta;                            // [num_ok + num_failed, D]; row i is ok if i < num_ok
  std::vector<std::uint32_t> training, held_out;  // row numbers; the same share of both kinds in both
  Standardiser theta_standardiser;
  std::size_t batch_size = 0;

  bool is_ok(std::uint32_t row) const { return row < num_ok; }
  bool is_learnable() const { return num_ok >= kLeastOfEachKind && num_failed >= kLeastOfEachKind; }
  double rate() const { return static_cast<double>(num_ok) / static_cast<double>(num_ok + num_failed); }
};

/// Errors   as learn_success()
SuccessData prepare_success_data(const Prior& prior, const SimulationSet& simulations, std::uint64_t seed);

/// Binary cross-entropy of ok against failed: one logit a row, the log odds of success.
class SuccessObjective final : public Objective {
 public:
  /// `data` must outlive it, be learnable, and stay where it is.
  SuccessObjective(const SuccessData& data, std::uint64_t seed);

  std::int64_t steps_per_epoch() const override { return order_.steps_per_epoch(); }
  PairBatch load_batch(std::int64_t step) override;
  RowLoss row_loss() const override;
  /// The loss and its standard error; nothing else of a record applies.
  EpochRecord measure(PairNetworkStep& step, const PairNetwork& network, bool information) override;

  /// Held-out predictions of a network against those of a constant rate.
  SuccessCalibration calibration(PairNetworkStep& step, const PairNetwork& network) const;

 private:
  /// Log odds of success of the held-out rows.
  std::vector<float> held_out_logits(PairNetworkStep& step, const PairNetwork& network) const;

  const SuccessData& data_;
  EpochOrder order_;
  Matrix<float> theta_, x_;  // of the present batch; x is 0
  Matrix<std::uint32_t> candidates_;
  std::vector<std::uint8_t> is_ok_;
  Matrix<float> held_out_theta_;
};

}  // namespace nrec
