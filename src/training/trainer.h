#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "nrec/kernels/pair_kernels.h"
#include "nrec/networks/pair_step.h"
#include "nrec/training/train.h"
#include "training/objective.h"

namespace nrec {

/// Everything that changes while a network is trained.
struct TrainerState {
  PairNetwork network;
  PairNetwork best;
  std::optional<PairNetwork> average;  // ema_epochs > 0: the moving average of `network`; else empty
  std::vector<float> adam_m, adam_v;
  std::int64_t step = 0;  // steps done since the start
  std::int64_t step_in_epoch = 0;
  double epoch_loss_sum = 0.0;  // of the steps of the present epoch
  std::vector<float>
      gradient_sum;        // gradients "accumulate": the clipped sum of the present epoch; else empty
  int best_epoch = 0;      // 1-based; 0 = none yet
  int num_reductions = 0;  // schedule "plateau": how often the learning rate was halved
  int last_reduction = 0;  // and after which epoch
  std::vector<EpochRecord> history;  // one per finished epoch

  /// Before the first step.
  static TrainerState start(PairNetwork network);
  /// What an epoch is measured with, and kept: the average where there is one.
  const PairNetwork& result() const { return average ? *average : network; }
};

/// The value of an epoch by which epochs are compared, smaller is better: validation_loss, nre_a_loss, or -i0.
double selection_value(const EpochRecord& record, std::string_view select_epoch);
/// What users call it: "validation loss", "NRE-A validation loss", "I0".
std::string_view selection_name(std::string_view select_epoch);

/// Schedule "plateau": epochs without a better value after which training goes back to its best state with half
/// the learning rate, and how often that may happen before training has converged.
inline constexpr int kPlateauEpochs = 5;
inline constexpr int kMostReductions = 6;

/// Adam on the batches of an objective, step by step, on a TrainerState.
class Trainer {
 public:
  /// All three must outlive it.
  Trainer(Objective& objective, const TrainingOptions& options, const RunContext& run);

  /// One Adam step; returns the loss of its mini-batch.
  double train_step(TrainerState& state);
  /// Closes the epoch: measures, and keeps the state if it is the best so far.
  const EpochRecord& finish_epoch(TrainerState& state);

  PairNetworkStep& step() { return *step_; }
  std::int64_t steps_per_epoch() const { return objective_.steps_per_epoch(); }
  std::string_view isa() const { return step_->isa(); }

 private:
  double learning_rate(const TrainerState& state) const;
  /// The step that Adam takes: of the gradient of the mini-batch, or of the sum of the epoch.
  void adam_step(TrainerState& state, std::span<const float> gradient, double clip, double rate);
  /// Adds the gradient of the mini-batch to the sum of the epoch and clips that in place.
  void accumulate_gradient(TrainerState& state) const;
  double clip_factor(std::span<const float> gradient) const;
  void update_average(TrainerState& state) const;
  void reduce_on_plateau(TrainerState& state) const;
  bool is_better(const EpochRecord& record, const TrainerState& state) const;

  Objective& objective_;
  const TrainingOptions& options_;
  std::unique_ptr<PairNetworkStep> step_;
  const PairKernels& kernels_;
  std::vector<float> gradient_;
};

}  // namespace nrec
