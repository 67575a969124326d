#pragma once

#include <memory>
#include <string>

#include "training/success_objective.h"
#include "training/training_phase.h"

namespace nrec {

/// Learns P(ok | theta) of one set of simulations, in pieces: the state between them is a TrainerState.
class SuccessLearner {
 public:
  /// Errors   as learn_success()
  SuccessLearner(const Prior& prior, const SimulationSet& simulations, const RunContext& run);
  ~SuccessLearner();

  /// False where there are too few failures or successes: then there is nothing to train, only model() to ask for.
  bool is_learnable() const { return data_.is_learnable(); }
  /// A network that says the constant rate everywhere.
  TrainerState start() const;
  /// Trains until it has converged, a stop, or `time_limit` on `watch`; the settings are fixed (docs/methods/failures.md).
  TrainingStatus train(TrainerState& state, const Stopwatch& watch, double time_limit,
                       std::function<void()> save);
  /// The best network so far, or a constant rate where it is no better. `state` may be null where is_learnable() is false.
  SuccessModel model(const TrainerState* state);
  /// A name for data and split.
  std::string fingerprint() const;

 private:
  const RunContext& run_;
  std::uint64_t seed_;
  SuccessData data_;
  std::unique_ptr<SuccessObjective> objective_;  // where there is something to learn
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace nrec
