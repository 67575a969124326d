#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "training/trainer.h"

namespace nrec {

/// The training of one network within a call of train(): what ends it, who is told, and when the state is saved.
struct TrainingPhase {
  std::string_view stage;  // of progress messages
  const TrainingOptions& options;
  const RunContext& run;
  const Stopwatch& watch;                                       // of the whole call
  double time_limit = std::numeric_limits<double>::infinity();  // on `watch`
  std::function<void()> save;  // called after every epoch; it may think that it is too early

  double step_seconds = 0.0;        // in the steps
  double validation_seconds = 0.0;  // in the measuring of epochs

  double started = 0.0;  // on `watch`
  double last_update = -std::numeric_limits<double>::infinity();

  /// Runs until something ends it and says what.
  TrainingStatus run_epochs(Trainer& trainer, TrainerState& state);
  void report(const TrainerState& state, std::int64_t steps_per_epoch, std::int64_t first_step);
};

/// "best validation loss 1.2345 at epoch 7", of the value that epochs are selected by; there must be a best epoch.
std::string best_text(const TrainerState& state, const std::string& select_epoch);

/// Fixed number of decimals, for messages.
std::string rounded(double value, int digits = 4);

}  // namespace nrec
