#include "training/trainer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "nrec/kernels/dispatch.h"
#include "training/information.h"

namespace nrec {

namespace {

constexpr float kAdamBeta1 = 0.9f;
constexpr float kAdamBeta2 = 0.999f;
constexpr float kAdamEps = 1e-8f;
constexpr double kClipEps = 1e-6;
constexpr double kEmaStart = 10.0;  // the average of t steps looks back (t + kEmaStart) / kEmaStart at most

double l2_norm(std::span<const float> values) {
  double sum = 0.0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

}  // namespace

TrainerState TrainerState::start(PairNetwork network) {
  const std::size_t size = network.weights().size();
  return {.network = network,
          .best = std::move(network),
          .average = {},
          .adam_m = std::vector<float>(size),
          .adam_v = std::vector<float>(size),
          .gradient_sum = {},
          .history = {}};
}

double selection_value(const EpochRecord& record, std::string_view select_epoch) {
  if (select_epoch == "i0") return -record.i0;
  return select_epoch == "nre-a" ? record.nre_a_loss : record.validation_loss;
}

std::string_view selection_name(std::string_view select_epoch) {
  if (select_epoch == "i0") return "I0";
  return select_epoch == "nre-a" ? "NRE-A validation loss" : "validation loss";
}

Trainer::Trainer(Objective& objective, const TrainingOptions& options, const RunContext& run)
    : objective_(objective),
      options_(options),
      step_(make_pair_step(run.isa, run.pool)),
      kernels_(pair_kernels(run.isa)) {}

double Trainer::learning_rate(const TrainerState& state) const {
  if (options_.learning_rate_schedule == "plateau")
    return std::ldexp(options_.learning_rate, -state.num_reductions);
  if (options_.learning_rate_schedule != "cosine") return options_.learning_rate;
  const double last = static_cast<double>(steps_per_epoch()) * options_.max_num_epochs;
  return options_.learning_rate * 0.5 *
         (1.0 + std::cos(std::numbers::pi * static_cast<double>(state.step) / last));
}

void Trainer::reduce_on_plateau(TrainerState& state) const {
  const auto epochs = static_cast<int>(state.history.size());
  if (state.best_epoch == 0 || epochs - std::max(state.best_epoch, state.last_reduction) < kPlateauEpochs)
    return;
  state.network = state.best;
  if (state.average) state.average = state.best;
  state.last_reduction = epochs;
  ++state.num_reductions;
}

double Trainer::train_step(TrainerState& state) {
  const PairBatch batch = objective_.load_batch(state.step);
  gradient_.resize(state.network.weights().size());
  const double rate = learning_rate(state);
  const double loss = step_->loss_and_gradient(state.network, batch, objective_.row_loss(), gradient_);
  ++state.step;
  ++state.step_in_epoch;
  state.epoch_loss_sum += loss;
  if (options_.gradients == "accumulate") {
    accumulate_gradient(state);
    adam_step(state, state.gradient_sum, 1.0, rate);
  } else {
    adam_step(state, gradient_, clip_factor(gradient_), rate);
  }
  if (state.average) update_average(state);
  return loss;
}

double Trainer::clip_factor(std::span<const float> gradient) const {
  if (!(options_.clip_max_norm > 0)) return 1.0;
  return std::min(1.0, options_.clip_max_norm / (l2_norm(gradient) + kClipEps));
}

void Trainer::accumulate_gradient(TrainerState& state) const {
  std::vector<float>& sum = state.gradient_sum;
  if (state.step_in_epoch == 1) sum.assign(gradient_.size(), 0.0f);  // the first step of its epoch
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient_[i];
  const auto clip = static_cast<float>(clip_factor(sum));
  for (float& value : sum) value *= clip;
}

void Trainer::adam_step(TrainerState& state, std::span<const float> gradient, double clip, double rate) {
  const auto t = static_cast<double>(state.step);
  const double correction1 = 1.0 - std::pow(static_cast<double>(kAdamBeta1), t);
  const double correction2 = 1.0 - std::pow(static_cast<double>(kAdamBeta2), t);
  const FlushDenormals flush;
  if (options_.weight_decay > 0) {
    const std::span<float> weights = state.network.weights();
    const auto keep = static_cast<float>(std::max(0.0, 1.0 - rate * options_.weight_decay));
    state.network.for_each_matrix([&](std::size_t first, std::size_t size) {
      for (float& weight : weights.subspan(first, size)) weight *= keep;
    });
  }
  kernels_.adam(state.network.weights().data(), gradient.data(), state.adam_m.data(), state.adam_v.data(),
                gradient.size(), static_cast<float>(clip), kAdamBeta1, kAdamBeta2,
                static_cast<float>(rate / correction1), static_cast<float>(1.0 / std::sqrt(correction2)),
                kAdamEps);
}

void Trainer::update_average(TrainerState& state) const {
  const auto t = static_cast<double>(state.step);
  const double steps = options_.ema_epochs * static_cast<double>(steps_per_epoch());
  // The first steps count little: the average forgets them at the pace at which it grows.
  const double share = std::min(1.0, std::max(1.0 / steps, kEmaStart / (t + kEmaStart)));
  const auto move = [share = static_cast<float>(share)](std::span<float> average,
                                                        std::span<const float> values) {
    for (std::size_t i = 0; i < average.size(); ++i) average[i] += share * (values[i] - average[i]);
  };
  const PairNetwork& network = state.network;
  const FlushDenormals flush;
  move(state.average->weights(), network.weights());
  move(state.average->statistics(), network.statistics());
}

bool Trainer::is_better(const EpochRecord& record, const TrainerState& state) const {
  const double value = selection_value(record, options_.select_epoch);
  if (!std::isfinite(record.validation_loss) || !std::isfinite(value)) return false;
  if (state.best_epoch == 0) return true;
  const EpochRecord& best = state.history[static_cast<std::size_t>(state.best_epoch) - 1];
  return value < selection_value(best, options_.select_epoch);
}

const EpochRecord& Trainer::finish_epoch(TrainerState& state) {
  const int epoch = static_cast<int>(state.history.size()) + 1;
  EpochRecord record =
      objective_.measure(*step_, state.result(),
                         measures_information(options_.information_epochs, epoch, options_.max_num_epochs));
  record.training_loss = state.epoch_loss_sum / static_cast<double>(state.step_in_epoch);
  const bool better = is_better(record, state);
  state.history.push_back(record);
  state.step_in_epoch = 0;
  state.epoch_loss_sum = 0.0;
  if (better) {
    state.best_epoch = epoch;
    state.best = state.result();
  }
  if (options_.learning_rate_schedule == "plateau") reduce_on_plateau(state);
  return state.history.back();
}

}  // namespace nrec
