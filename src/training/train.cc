#include "nrec/training/train.h"

#include <memory>

#include "nrec/core/error.h"
#include "training/checkpoint.h"
#include "training/contrastive_objective.h"
#include "training/fingerprint.h"
#include "training/joint_objective.h"
#include "training/prior_objective.h"
#include "training/success_learner.h"

namespace nrec {

namespace {

constexpr double kSuccessShare = 0.25;  // of a time limit, for learning P(ok | theta)

std::string end_message(TrainingStatus status, const TrainerState& state, const TrainingOptions& options) {
  const std::string best =
      state.best_epoch ? best_text(state, options.select_epoch) : std::string("no epoch finished");
  const std::string none_better = "no better " + std::string(selection_name(options.select_epoch));
  const std::string unfinished = options.learning_rate_schedule == "cosine"
                                     ? " (of " + std::to_string(options.max_num_epochs) +
                                           "; the learning rate had not fallen to 0 yet: go on with it, or "
                                           "choose a smaller max_num_epochs)"
                                     : std::string();
  switch (status) {
    case TrainingStatus::converged:
      if (state.num_reductions > kMostReductions)
        return none_better + " after " + std::to_string(kMostReductions) +
               " halvings of the learning rate; " + best;
      return none_better + " for " + std::to_string(options.stop_after_epochs) + " epochs; " + best;
    case TrainingStatus::epochs_done: {
      const bool early = state.best_epoch == static_cast<int>(state.history.size()) &&
                         options.learning_rate_schedule != "cosine";
      return "all " + std::to_string(options.max_num_epochs) + " epochs done; " + best +
             (early ? "; it was still improving: raise max_num_epochs" : "");
    }
    case TrainingStatus::budget_spent:
      return "time limit reached after " + std::to_string(state.history.size()) + " epochs" + unfinished +
             "; " + best;
    case TrainingStatus::stopped:
      return "stopped on request after " + std::to_string(state.history.size()) + " epochs" + unfinished +
             "; " + best;
    case TrainingStatus::diverged:
      break;
  }
  return "the loss became infinite or nan in epoch " + std::to_string(state.history.size() + 1) + "; " +
         best + "; lower learning_rate, or check x for extreme values";
}

/// Whether a network is as good as training will make it.
bool is_finished(TrainingStatus status) {
  return status == TrainingStatus::converged || status == TrainingStatus::epochs_done;
}

Record estimator_settings(const TrainingData& data, const NetworkOptions& network,
                          const TrainingOptions& options, const SimulationSet& simulations,
                          std::uint64_t seed, std::string_view isa, const std::string& fingerprint) {
  Record settings;
  settings.set("loss", loss_name(data.loss.kind()));
  settings.set("num_classes", data.loss.num_classes());
  settings.set("gamma", options.gamma);
  settings.set("contrast", options.contrast);
  settings.set("regime", options.regime);
  if (options.regime == "joint") settings.set("steps_per_epoch", options.steps_per_epoch);
  settings.set("training_batch_size", data.batch_size);
  settings.set("learning_rate", options.learning_rate);
  settings.set("learning_rate_schedule", options.learning_rate_schedule);
  settings.set("clip_max_norm", options.clip_max_norm);
  settings.set("weight_decay", options.weight_decay);
  settings.set("ema_epochs", options.ema_epochs);
  settings.set("validation_fraction", options.validation_fraction);
  settings.set("max_num_epochs", options.max_num_epochs);
  settings.set("stop_after_epochs", options.stop_after_epochs);
  settings.set("select_epoch", options.select_epoch);
  settings.set("information_thetas", options.information_thetas);
  settings.set("information_epochs", options.information_epochs);
  settings.set("gradients", options.gradients);
  settings.set("standardise_x", options.standardise_x);
  settings.set("standardise_from", options.standardise_from);
  settings.set("hidden_features", network.hidden_features);
  settings.set("num_blocks", network.num_blocks);
  settings.set("norm", network.norm);
  settings.set("seed", RecordValue(static_cast<std::int64_t>(seed)));
  settings.set("isa", isa);
  settings.set("num_simulations", simulations.num_rows());
  settings.set("num_dropped", simulations.num_dropped);
  if (simulations.failed_theta.rows() > 0) settings.set("num_failed", simulations.failed_theta.rows());
  settings.set("simulations", simulations.source);
  settings.set("data_hash", fingerprint);
  return settings;
}

/// One call of train(): what is decided once, and what changes.
class TrainingRun {
 public:
  TrainingRun(const Prior& prior, const SimulationSet& simulations, const NetworkOptions& network,
              const TrainingOptions& options, const RunContext& run, const CheckpointOptions& checkpoint,
              const Simulator* simulator)
      : prior_(prior),
        simulations_(simulations),
        network_(network),
        options_(options),
        run_(run),
        data_(prepare_training_data(prior, simulations, options, run, simulator)),
        objective_(make_objective(simulator)),
        trainer_(*objective_, options, run),
        state_{.ratio = TrainerState::start(PairNetwork::initialised(shape(), run.seed)), .success = {}} {
    if (options.gradients == "accumulate")
      state_.ratio.gradient_sum.resize(state_.ratio.network.weights().size());
    if (options.ema_epochs > 0) state_.ratio.average = state_.ratio.network;
    for (const std::string& warning : data_.warnings) run.log.warning(warning);
    if (simulations.failed_theta.rows() > 0)
      success_ = std::make_unique<SuccessLearner>(prior, simulations, run);
    if (success_ && success_->is_learnable()) state_.success = success_->start();
    fingerprint_ = training_fingerprint(data_, shape(), options, run.seed, trainer_.isa(),
                                        success_ ? success_->fingerprint() : "");
    if (checkpoint.resume && !checkpoint.path.empty() && std::filesystem::exists(checkpoint.path)) {
      load_checkpoint(fingerprint_, checkpoint.path, state_);
      run.log.info("resuming training after " + std::to_string(state_.ratio.history.size()) + " epochs");
    }
    keeper_ = std::make_unique<CheckpointKeeper>(checkpoint.path, fingerprint_, state_, watch_);
    watch_ = {};  // time is counted from here
  }

  TrainingResult result() {
    const TrainingStatus success = learn_success();
    TrainingPhase phase{.stage = "training",
                        .options = options_,
                        .run = run_,
                        .watch = watch_,
                        .time_limit = run_.time_limit,
                        .save = [this] { keeper_->save_if_due(); }};
    const TrainingStatus status = phase.run_epochs(trainer_, state_.ratio);
    step_seconds_ = phase.step_seconds;
    validation_seconds_ = phase.validation_seconds;
    if (status != TrainingStatus::diverged) keeper_->save();
    TrainingResult result;
    describe(status, success, result.summary);
    if (!result.summary.usable) return result;
    result.estimator = estimator();
    if (result.estimator->success) result.summary.success_message = result.estimator->success->sentence();
    return result;
  }

 private:
  PairNetworkShape shape() const {
    return {.dim_theta = prior_.dim(),
            .dim_x = simulations_.dim_x(),
            .hidden_features = static_cast<std::size_t>(network_.hidden_features),
            .num_blocks = static_cast<std::size_t>(network_.num_blocks),
            .norm = norm_kind(network_.norm)};
  }

  std::unique_ptr<Objective> make_objective(const Simulator* simulator) const {
    if (options_.regime == "prior") return std::make_unique<PriorObjective>(prior_, data_, run_);
    if (options_.regime != "joint") return std::make_unique<ContrastiveObjective>(data_, run_.seed);
    check_joint_simulator(simulator, prior_.dim(), simulations_.dim_x());
    return std::make_unique<JointObjective>(prior_, *simulator, data_, options_.steps_per_epoch, run_);
  }

  /// The first phase, where rows failed; it does not touch the state of the ratio.
  TrainingStatus learn_success() {
    if (!state_.success) return TrainingStatus::converged;
    run_.log.info("learning P(ok | theta) from " + std::to_string(simulations_.num_rows()) +
                  " successes and " + std::to_string(simulations_.failed_theta.rows()) + " failures");
    const double start = watch_.seconds();
    const TrainingStatus status = success_->train(*state_.success, watch_, kSuccessShare * run_.time_limit,
                                                  [this] { keeper_->save_if_due(); });
    success_seconds_ = watch_.seconds() - start;
    return status;
  }

  void describe(TrainingStatus status, TrainingStatus success, TrainingSummary& summary) {
    const TrainerState& ratio = state_.ratio;
    summary.status = status;
    summary.message = end_message(status, ratio, options_);
    summary.usable = ratio.best_epoch > 0;
    if (success_) add_success(success, summary);
    summary.num_epochs = static_cast<int>(ratio.history.size());
    summary.best_epoch = ratio.best_epoch;
    summary.num_training_rows = options_.regime == "joint"
                                    ? static_cast<std::size_t>(ratio.step) * data_.batch_size
                                    : data_.training.size();
    summary.num_validation_rows = data_.validation.size();
    summary.batch_size = data_.batch_size;
    summary.isa = trainer_.isa();
    summary.warnings = data_.warnings;
    summary.seconds = watch_.seconds();
    summary.step_seconds = step_seconds_;
    summary.validation_seconds = validation_seconds_;
    if (!summary.usable) return;
    const EpochRecord& best = ratio.history[static_cast<std::size_t>(ratio.best_epoch) - 1];
    summary.best_validation_loss = best.validation_loss;
    summary.best_validation_loss_se = best.validation_loss_se;
  }

  /// A ratio without the chance of success that belongs to it is no result; with half of it, it is a partial one.
  void add_success(TrainingStatus success, TrainingSummary& summary) {
    summary.success_seconds = success_seconds_;
    if (!state_.success) return;
    summary.success_epochs = static_cast<int>(state_.success->history.size());
    if (success == TrainingStatus::stopped || success == TrainingStatus::budget_spent) {
      if (is_finished(summary.status)) summary.status = success;
      summary.message = "learning where simulations fail was cut off after " +
                        std::to_string(summary.success_epochs) + " epochs; " + summary.message;
      if (state_.success->best_epoch == 0) summary.usable = false;
    }
  }

  RatioEstimator estimator() {
    const TrainerState& ratio = state_.ratio;
    RatioEstimator estimator{.network = ratio.best,
                             .prior = prior_,
                             .theta_standardiser = data_.theta_standardiser,
                             .x_standardiser = data_.x_standardiser,
                             .x_low = data_.x_low,
                             .x_high = data_.x_high,
                             .settings = estimator_settings(data_, network_, options_, simulations_,
                                                            run_.seed, trainer_.isa(), fingerprint_),
                             .history = ratio.history,
                             .best_epoch = ratio.best_epoch};
    if (success_) estimator.success = success_->model(state_.success ? &*state_.success : nullptr);
    return estimator;
  }

  const Prior& prior_;
  const SimulationSet& simulations_;
  const NetworkOptions& network_;
  const TrainingOptions& options_;
  const RunContext& run_;
  Stopwatch watch_;
  TrainingData data_;
  std::unique_ptr<Objective> objective_;
  Trainer trainer_;
  TrainingState state_;
  std::unique_ptr<SuccessLearner> success_;  // where rows failed
  double success_seconds_ = 0.0, step_seconds_ = 0.0, validation_seconds_ = 0.0;
  std::string fingerprint_;
  std::unique_ptr<CheckpointKeeper> keeper_;
};

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
                     const CheckpointOptions& checkpoint, const Simulator* simulator) {
  const TrainingOptions settled = settled_options(options, simulations.num_rows());
  return TrainingRun(prior, simulations, network, settled, run, checkpoint, simulator).result();
}

}  // namespace nrec
