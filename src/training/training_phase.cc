#include "training/training_phase.h"

#include <cmath>
#include <cstdio>

namespace nrec {

namespace {
constexpr double kSecondsBetweenUpdates = 0.5;
}

std::string rounded(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string best_text(const TrainerState& state, const std::string& select_epoch) {
  const EpochRecord& best = state.history[static_cast<std::size_t>(state.best_epoch) - 1];
  const double value = select_epoch == "i0" ? best.i0 : selection_value(best, select_epoch);
  return "best " + std::string(selection_name(select_epoch)) + " " + rounded(value) + " at epoch " +
         std::to_string(state.best_epoch);
}

TrainingStatus TrainingPhase::run_epochs(Trainer& trainer, TrainerState& state) {
  started = watch.seconds();
  const std::int64_t first_step = state.step;
  for (;;) {
    const auto epochs = static_cast<int>(state.history.size());
    if (options.stop_after_epochs > 0 && state.best_epoch > 0 &&
        epochs - state.best_epoch >= options.stop_after_epochs)
      return TrainingStatus::converged;
    if (state.num_reductions > kMostReductions) return TrainingStatus::converged;
    if (epochs >= options.max_num_epochs) return TrainingStatus::epochs_done;
    while (state.step_in_epoch < trainer.steps_per_epoch()) {
      if (run.stop_requested()) return TrainingStatus::stopped;
      if (watch.seconds() > time_limit) return TrainingStatus::budget_spent;
      const double began = watch.seconds();
      const double loss = trainer.train_step(state);
      step_seconds += watch.seconds() - began;
      if (!std::isfinite(loss)) return TrainingStatus::diverged;
      report(state, trainer.steps_per_epoch(), first_step);
    }
    const double began = watch.seconds();
    trainer.finish_epoch(state);
    validation_seconds += watch.seconds() - began;
    save();
  }
}

void TrainingPhase::report(const TrainerState& state, std::int64_t steps_per_epoch, std::int64_t first_step) {
  if (watch.seconds() - last_update < kSecondsBetweenUpdates || state.step == first_step) return;
  last_update = watch.seconds();
  const double rate = static_cast<double>(state.step - first_step) / (watch.seconds() - started);
  ProgressUpdate update;
  update.stage = stage;
  update.unit = "epoch";
  update.done = static_cast<double>(state.step) / static_cast<double>(steps_per_epoch);
  update.total = options.max_num_epochs;
  const double epochs_left = options.max_num_epochs - update.done;
  update.seconds_left = epochs_left * static_cast<double>(steps_per_epoch) / rate;
  update.detail = rounded(rate, 1) + " steps/s";
  if (!state.history.empty()) {
    const EpochRecord& last = state.history.back();
    update.detail = "loss " + rounded(last.validation_loss) + " +- " + rounded(last.validation_loss_se) +
                    (state.best_epoch ? ", " + best_text(state, options.select_epoch) : "") + ", " +
                    update.detail;
  }
  run.log.progress(update);
}

}  // namespace nrec
