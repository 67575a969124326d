#include "nrec/training/train.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nrec/core/error.h"
#include "training/fingerprint.h"
#include "training/trainer.h"

namespace nrec {

namespace {

constexpr double kSecondsBetweenCheckpoints = 1.0;
constexpr double kSecondsBetweenUpdates = 0.5;

std::string rounded(double value, int digits = 4) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

/// Everything that is decided once: data, network shape, and where the state lives.
struct TrainingRun {
  const TrainingOptions& options;
  const RunContext& run;
  const CheckpointOptions& checkpoint;
  std::string fingerprint;
  Stopwatch watch = {};
  double last_checkpoint = -std::numeric_limits<double>::infinity();
  double last_update = -std::numeric_limits<double>::infinity();

  void save(const TrainerState& state, bool now) {
    if (checkpoint.path.empty() || (!now && watch.seconds() - last_checkpoint < kSecondsBetweenCheckpoints))
      return;
    save_checkpoint(state, fingerprint, checkpoint.path);
    last_checkpoint = watch.seconds();
  }

  void report(const TrainerState& state, std::int64_t steps_per_epoch, std::int64_t first_step) {
    if (watch.seconds() - last_update < kSecondsBetweenUpdates || state.step == first_step) return;
    last_update = watch.seconds();
    const double rate = static_cast<double>(state.step - first_step) / watch.seconds();
    ProgressUpdate update;
    update.stage = "training";
    update.unit = "epoch";
    update.done = static_cast<double>(state.step) / static_cast<double>(steps_per_epoch);
    update.total = options.max_num_epochs;
    const double epochs_left = options.max_num_epochs - update.done;
    update.seconds_left = epochs_left * static_cast<double>(steps_per_epoch) / rate;
    update.detail = rounded(rate, 1) + " steps/s";
    if (!state.history.empty()) {
      const EpochRecord& last = state.history.back();
      update.detail =
          "loss " + rounded(last.validation_loss) + " +- " + rounded(last.validation_loss_se) +
          (state.best_epoch
               ? ", best " +
                     rounded(state.history[static_cast<std::size_t>(state.best_epoch) - 1].validation_loss) +
                     " at epoch " + std::to_string(state.best_epoch)
               : "") +
          ", " + update.detail;
    }
    run.log.progress(update);
  }
};

TrainerState initial_state(const PairNetworkShape& shape, std::uint64_t seed) {
  PairNetwork network = PairNetwork::initialised(shape, seed);
  const std::size_t size = network.weights().size();
  return {.network = network,
          .best = network,
          .adam_m = std::vector<float>(size),
          .adam_v = std::vector<float>(size),
          .history = {}};
}

/// Runs until something ends it and says what.
TrainingStatus run_epochs(TrainingRun& context, Trainer& trainer, TrainerState& state) {
  const TrainingOptions& options = context.options;
  const std::int64_t first_step = state.step;
  for (;;) {
    const auto epochs = static_cast<int>(state.history.size());
    if (options.stop_after_epochs > 0 && state.best_epoch > 0 &&
        epochs - state.best_epoch >= options.stop_after_epochs)
      return TrainingStatus::converged;
    if (state.num_reductions > kMostReductions) return TrainingStatus::converged;
    if (epochs >= options.max_num_epochs) return TrainingStatus::epochs_done;
    while (state.step_in_epoch < trainer.steps_per_epoch()) {
      if (context.run.stop_requested()) return TrainingStatus::stopped;
      if (context.watch.seconds() > context.run.time_limit) return TrainingStatus::budget_spent;
      if (!std::isfinite(trainer.train_step(state))) return TrainingStatus::diverged;
      context.report(state, trainer.steps_per_epoch(), first_step);
    }
    trainer.finish_epoch(state);
    context.save(state, false);
  }
}

std::string end_message(TrainingStatus status, const TrainerState& state, const TrainingRun& context) {
  const std::string best =
      state.best_epoch
          ? "best validation loss " +
                rounded(state.history[static_cast<std::size_t>(state.best_epoch) - 1].validation_loss) +
                " at epoch " + std::to_string(state.best_epoch)
          : std::string("no epoch finished");
  switch (status) {
    case TrainingStatus::converged:
      if (state.num_reductions > kMostReductions)
        return "no better validation loss after " + std::to_string(kMostReductions) +
               " halvings of the learning rate; " + best;
      return "no better validation loss for " + std::to_string(context.options.stop_after_epochs) +
             " epochs; " + best;
    case TrainingStatus::epochs_done: {
      const bool early = state.best_epoch == static_cast<int>(state.history.size()) &&
                         context.options.learning_rate_schedule != "cosine";
      return "all " + std::to_string(context.options.max_num_epochs) + " epochs done; " + best +
             (early ? "; it was still improving: raise max_num_epochs" : "");
    }
    case TrainingStatus::budget_spent:
      return "time limit reached after " + std::to_string(state.history.size()) + " epochs; " + best;
    case TrainingStatus::stopped:
      return "stopped on request after " + std::to_string(state.history.size()) + " epochs; " + best;
    case TrainingStatus::diverged:
      break;
  }
  return "the loss became infinite or nan in epoch " + std::to_string(state.history.size() + 1) + "; " +
         best + "; lower learning_rate, or check x for extreme values";
}

Record estimator_settings(const TrainingData& data, const NetworkOptions& network,
                          const TrainingOptions& options, const TrainingRun& context,
                          const SimulationSet& simulations, std::string_view isa) {
  Record settings;
  settings.set("loss", loss_name(data.loss.kind()));
  settings.set("num_classes", data.loss.num_classes());
  settings.set("gamma", options.gamma);
  settings.set("contrast", options.contrast);
  settings.set("training_batch_size", data.batch_size);
  settings.set("learning_rate", options.learning_rate);
  settings.set("learning_rate_schedule", options.learning_rate_schedule);
  settings.set("clip_max_norm", options.clip_max_norm);
  settings.set("validation_fraction", options.validation_fraction);
  settings.set("max_num_epochs", options.max_num_epochs);
  settings.set("stop_after_epochs", options.stop_after_epochs);
  settings.set("standardise_x", options.standardise_x);
  settings.set("hidden_features", network.hidden_features);
  settings.set("num_blocks", network.num_blocks);
  settings.set("norm", network.norm);
  settings.set("seed", RecordValue(static_cast<std::int64_t>(context.run.seed)));
  settings.set("isa", isa);
  settings.set("num_simulations", simulations.num_rows());
  settings.set("num_dropped", simulations.num_dropped);
  settings.set("simulations", simulations.source);
  settings.set("data_hash", context.fingerprint);
  return settings;
}

}  // namespace

std::string_view training_status_name(TrainingStatus status) {
  switch (status) {
    case TrainingStatus::converged:
      return "converged";
    case TrainingStatus::epochs_done:
      return "epochs done";
    case TrainingStatus::budget_spent:
      return "budget spent";
    case TrainingStatus::stopped:
      return "stopped";
    case TrainingStatus::diverged:
      break;
  }
  return "diverged";
}

TrainingResult train(const Prior& prior, const SimulationSet& simulations, const NetworkOptions& network,
                     const TrainingOptions& options, const RunContext& run,
                     const CheckpointOptions& checkpoint) {
  const TrainingData data = prepare_training_data(prior, simulations, options, run.seed);
  for (const std::string& warning : data.warnings) run.log.warning(warning);
  const PairNetworkShape shape = {.dim_theta = prior.dim(),
                                  .dim_x = simulations.dim_x(),
                                  .hidden_features = static_cast<std::size_t>(network.hidden_features),
                                  .num_blocks = static_cast<std::size_t>(network.num_blocks),
                                  .norm = norm_kind(network.norm)};
  Trainer trainer(data, options, run);
  TrainingRun context{.options = options,
                      .run = run,
                      .checkpoint = checkpoint,
                      .fingerprint = training_fingerprint(data, shape, options, run.seed, trainer.isa())};
  const bool resume =
      checkpoint.resume && !checkpoint.path.empty() && std::filesystem::exists(checkpoint.path);
  TrainerState state =
      resume ? load_checkpoint(shape, context.fingerprint, checkpoint.path) : initial_state(shape, run.seed);
  if (resume) run.log.info("resuming training after " + std::to_string(state.history.size()) + " epochs");

  TrainingResult result;
  TrainingSummary& summary = result.summary;
  summary.status = run_epochs(context, trainer, state);
  if (summary.status != TrainingStatus::diverged) context.save(state, true);
  summary.message = end_message(summary.status, state, context);
  summary.usable = state.best_epoch > 0;
  summary.num_epochs = static_cast<int>(state.history.size());
  summary.best_epoch = state.best_epoch;
  summary.num_training_rows = data.training.size();
  summary.num_validation_rows = data.validation.size();
  summary.batch_size = data.batch_size;
  summary.isa = trainer.isa();
  summary.warnings = data.warnings;
  summary.seconds = context.watch.seconds();
  if (!summary.usable) return result;
  const EpochRecord& best = state.history[static_cast<std::size_t>(state.best_epoch) - 1];
  summary.best_validation_loss = best.validation_loss;
  summary.best_validation_loss_se = best.validation_loss_se;
  result.estimator = RatioEstimator{
      .network = state.best,
      .prior = prior,
      .theta_standardiser = data.theta_standardiser,
      .x_standardiser = data.x_standardiser,
      .x_low = data.x_low,
      .x_high = data.x_high,
      .settings = estimator_settings(data, network, options, context, simulations, trainer.isa()),
      .history = state.history,
      .best_epoch = state.best_epoch};
  return result;
}

}  // namespace nrec
