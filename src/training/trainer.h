#pragma once

#include <memory>
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
  std::vector<float> adam_m, adam_v;
  std::int64_t step = 0;  // steps done since the start
  std::int64_t step_in_epoch = 0;
  double epoch_loss_sum = 0.0;       // of the steps of the present epoch
  int best_epoch = 0;                // 1-based; 0 = none yet
  int num_reductions = 0;            // schedule "plateau": how often the learning rate was halved
  int last_reduction = 0;            // and after which epoch
  std::vector<EpochRecord> history;  // one per finished epoch

  /// Before the first step.
  static TrainerState start(PairNetwork network);
};

/// Schedule "plateau": epochs without a better validation loss after which training goes back to its best state with half
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
  void adam_step(TrainerState& state, double rate);
  void reduce_on_plateau(TrainerState& state) const;

  Objective& objective_;
  const TrainingOptions& options_;
  std::unique_ptr<PairNetworkStep> step_;
  const PairKernels& kernels_;
  std::vector<float> gradient_;
};

}  // namespace nrec
