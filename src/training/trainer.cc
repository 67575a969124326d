#include "training/trainer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "nrec/kernels/dispatch.h"
#include "nrec/training/contrastive_batch.h"

namespace nrec {

namespace {

constexpr float kAdamBeta1 = 0.9f;
constexpr float kAdamBeta2 = 0.999f;
constexpr float kAdamEps = 1e-8f;
constexpr double kClipEps = 1e-6;

double l2_norm(const std::vector<float>& values) {
  double sum = 0.0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

}  // namespace

Trainer::Trainer(const TrainingData& data, const TrainingOptions& options, const RunContext& run)
    : data_(data),
      options_(options),
      seed_(run.seed),
      steps_per_epoch_(static_cast<std::int64_t>(data.training.size() / data.batch_size)),
      step_(make_pair_step(run.isa, run.pool)),
      kernels_(pair_kernels(run.isa)),
      validation_(data, run.seed),
      theta_(data.batch_size, data.theta.cols()),
      x_(data.batch_size, data.x.cols()),
      candidates_(data.batch_size, data.loss.num_columns()) {}

void Trainer::load_batch(const TrainerState& state) {
  const std::int64_t epoch = state.step / steps_per_epoch_;
  if (epoch != order_epoch_) {
    order_ = data_.training;
    RandomStream random(seed_, Stream::minibatch, static_cast<std::uint64_t>(epoch));
    random.shuffle(order_);
    order_epoch_ = epoch;
  }
  const std::size_t first = static_cast<std::size_t>(state.step_in_epoch) * data_.batch_size;
  for (std::size_t b = 0; b < data_.batch_size; ++b) {
    const std::uint32_t row = order_[first + b];
    std::copy(data_.theta.row(row).begin(), data_.theta.row(row).end(), theta_.row(b).begin());
    std::copy(data_.x.row(row).begin(), data_.x.row(row).end(), x_.row(b).begin());
  }
  RandomStream random(seed_, Stream::contrast, static_cast<std::uint64_t>(state.step));
  fill_candidates(data_.loss, 0, data_.batch_size, random, candidates_);
}

double Trainer::learning_rate(const TrainerState& state) const {
  if (options_.learning_rate_schedule == "plateau")
    return std::ldexp(options_.learning_rate, -state.num_reductions);
  if (options_.learning_rate_schedule != "cosine") return options_.learning_rate;
  const double last = static_cast<double>(steps_per_epoch_) * options_.max_num_epochs;
  return options_.learning_rate * 0.5 *
         (1.0 + std::cos(std::numbers::pi * static_cast<double>(state.step) / last));
}

void Trainer::reduce_on_plateau(TrainerState& state) const {
  const auto epochs = static_cast<int>(state.history.size());
  if (state.best_epoch == 0 || epochs - std::max(state.best_epoch, state.last_reduction) < kPlateauEpochs)
    return;
  state.network = state.best;
  state.last_reduction = epochs;
  ++state.num_reductions;
}

double Trainer::train_step(TrainerState& state) {
  load_batch(state);
  gradient_.resize(state.network.weights().size());
  const RowLoss row_loss = {
      [](const void* context, std::span<const float> logits, std::span<float> d_logits) {
        return static_cast<const ContrastiveLoss*>(context)->row(logits, d_logits);
      },
      &data_.loss};
  const double rate = learning_rate(state);
  const double loss = step_->loss_and_gradient(state.network, {theta_, x_, candidates_}, row_loss, gradient_);
  ++state.step;
  ++state.step_in_epoch;
  state.epoch_loss_sum += loss;
  const double norm = l2_norm(gradient_);
  const double clip =
      options_.clip_max_norm > 0 ? std::min(1.0, options_.clip_max_norm / (norm + kClipEps)) : 1.0;
  const auto t = static_cast<double>(state.step);
  const double correction1 = 1.0 - std::pow(static_cast<double>(kAdamBeta1), t);
  const double correction2 = 1.0 - std::pow(static_cast<double>(kAdamBeta2), t);
  const FlushDenormals flush;
  kernels_.adam(state.network.weights().data(), gradient_.data(), state.adam_m.data(), state.adam_v.data(),
                gradient_.size(), static_cast<float>(clip), kAdamBeta1, kAdamBeta2,
                static_cast<float>(rate / correction1), static_cast<float>(1.0 / std::sqrt(correction2)),
                kAdamEps);
  return loss;
}

const EpochRecord& Trainer::finish_epoch(TrainerState& state) {
  EpochRecord record = validation_.measure(*step_, state.network);
  record.training_loss = state.epoch_loss_sum / static_cast<double>(state.step_in_epoch);
  const bool first = state.best_epoch == 0;
  const bool better =
      std::isfinite(record.validation_loss) &&
      (first || record.validation_loss <
                    state.history[static_cast<std::size_t>(state.best_epoch) - 1].validation_loss);
  state.history.push_back(record);
  state.step_in_epoch = 0;
  state.epoch_loss_sum = 0.0;
  if (better) {
    state.best_epoch = static_cast<int>(state.history.size());
    state.best = state.network;
  }
  if (options_.learning_rate_schedule == "plateau") reduce_on_plateau(state);
  return state.history.back();
}

}  // namespace nrec
