#include "training/success_learner.h"

#include <algorithm>
#include <cmath>

#include "nrec/core/random.h"
#include "nrec/io/file.h"

namespace nrec {

namespace {

constexpr std::size_t kHiddenFeatures = 50;
constexpr std::size_t kNumBlocks = 2;
constexpr double kLeastGainInErrors =
    1.0;  // a network must beat the constant rate by so many standard errors

/// Fixed: rates of success are smooth or have one wall, and a small network finds either in seconds.
const TrainingOptions& success_options() {
  static const TrainingOptions options = [] {
    TrainingOptions fixed;
    fixed.learning_rate = 2e-3;
    fixed.learning_rate_schedule = "plateau";
    fixed.weight_decay = 0.0;
    fixed.ema_epochs = 0.0;
    fixed.max_num_epochs = 400;
    fixed.stop_after_epochs = 0;  // the schedule ends it
    return fixed;
  }();
  return options;
}

}  // namespace

SuccessLearner::SuccessLearner(const Prior& prior, const SimulationSet& simulations, const RunContext& run)
    : run_(run),
      seed_(RandomStream(run.seed, Stream::success).bits64()),
      data_(prepare_success_data(prior, simulations, seed_)) {
  if (!data_.is_learnable()) return;
  objective_ = std::make_unique<SuccessObjective>(data_, seed_);
  trainer_ = std::make_unique<Trainer>(*objective_, success_options(), run_);
}

SuccessLearner::~SuccessLearner() = default;

TrainerState SuccessLearner::start() const {
  PairNetwork network = PairNetwork::initialised({.dim_theta = data_.theta.cols(),
                                                  .dim_x = 1,
                                                  .hidden_features = kHiddenFeatures,
                                                  .num_blocks = kNumBlocks,
                                                  .norm = Norm::layer},
                                                 seed_);
  const std::span<float> weights = network.weights();
  std::fill(weights.begin() + static_cast<std::ptrdiff_t>(network.out_weight()),
            weights.begin() + static_cast<std::ptrdiff_t>(network.out_bias()), 0.0f);
  weights[network.out_bias()] =
      static_cast<float>(std::log(static_cast<double>(data_.num_ok) / static_cast<double>(data_.num_failed)));
  return TrainerState::start(std::move(network));
}

TrainingStatus SuccessLearner::train(TrainerState& state, const Stopwatch& watch, double time_limit,
                                     std::function<void()> save) {
  TrainingPhase phase{.stage = "learning failures",
                      .options = success_options(),
                      .run = run_,
                      .watch = watch,
                      .time_limit = time_limit,
                      .save = std::move(save)};
  return phase.run_epochs(*trainer_, state);
}

SuccessModel SuccessLearner::model(const TrainerState* state) {
  SuccessModel model;
  model.num_ok = data_.num_ok;
  model.num_failed = data_.num_failed;
  if (!is_learnable()) return model;
  model.kind = SuccessKind::no_better;
  if (!state || state->best_epoch == 0) return model;
  model.calibration = objective_->calibration(trainer_->step(), state->best);
  if (!(model.calibration.gain > kLeastGainInErrors * model.calibration.gain_se)) return model;
  model.kind = SuccessKind::network;
  model.network = state->best;
  model.theta_standardiser = data_.theta_standardiser;
  return model;
}

std::string SuccessLearner::fingerprint() const {
  const std::vector<float>& theta = data_.theta.values();
  return content_hash({reinterpret_cast<const char*>(theta.data()), theta.size() * sizeof(float)}) + " " +
         std::to_string(data_.num_ok);
}

SuccessModel learn_success(const Prior& prior, const SimulationSet& simulations, const RunContext& run) {
  SuccessLearner learner(prior, simulations, run);
  if (!learner.is_learnable()) return learner.model(nullptr);
  const Stopwatch watch;
  TrainerState state = learner.start();
  learner.train(state, watch, run.time_limit, [] {});
  return learner.model(&state);
}

}  // namespace nrec
