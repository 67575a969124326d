#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nrec/kernels/pair_kernels.h"
#include "nrec/networks/pair_step.h"
#include "training/training_data.h"
#include "training/validation.h"

namespace nrec {

/// Everything that changes while training runs; a checkpoint is this and nothing else.
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
};

/// Atomic. `fingerprint` names problem and settings: resuming under another one is refused.
void save_checkpoint(const TrainerState& state, const std::string& fingerprint,
                     const std::filesystem::path& path);
/// Errors: IoError: damaged, or made for other data or settings.
TrainerState load_checkpoint(const PairNetworkShape& shape, const std::string& fingerprint,
                             const std::filesystem::path& path);

/// Schedule "plateau": epochs without a better validation loss after which training goes back to its best state with half
/// the learning rate, and how often that may happen before training has converged.
inline constexpr int kPlateauEpochs = 5;
inline constexpr int kMostReductions = 6;

/// Runs epochs of Adam on a TrainerState.
class Trainer {
 public:
  Trainer(const TrainingData& data, const TrainingOptions& options, const RunContext& run);

  /// One Adam step; returns the loss of its mini-batch.
  double train_step(TrainerState& state);
  /// Closes the epoch: measures, and keeps the state if it is the best so far.
  const EpochRecord& finish_epoch(TrainerState& state);

  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }
  std::string_view isa() const { return step_->isa(); }

 private:
  void load_batch(const TrainerState& state);
  double learning_rate(const TrainerState& state) const;
  void reduce_on_plateau(TrainerState& state) const;

  const TrainingData& data_;
  const TrainingOptions& options_;
  std::uint64_t seed_;
  std::int64_t steps_per_epoch_;
  std::unique_ptr<PairNetworkStep> step_;
  const PairKernels& kernels_;
  Validation validation_;
  std::vector<std::uint32_t> order_;  // of the training rows in the present epoch
  std::int64_t order_epoch_ = -1;
  Matrix<float> theta_, x_;
  Matrix<std::uint32_t> candidates_;
  std::vector<float> gradient_;
};

}  // namespace nrec
