#include "experiments/weighted_classifier.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace nrec {

namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

double softplus(double z) { return z > 0.0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z)); }
double sigmoid(double z) { return 1.0 / (1.0 + std::exp(-z)); }

}  // namespace

WeightedClassifier::WeightedClassifier(RandomStream random) : random_(random) {
  const auto fill = [&](std::size_t first, std::size_t last, double fan_in) {
    const double bound = 1.0 / std::sqrt(fan_in);
    for (std::size_t i = first; i < last; ++i) weights_[i] = random_.uniform(-bound, bound);
  };
  fill(kW1, kW2, 1.0);
  fill(kW2, kSize, static_cast<double>(kHidden));
}

WeightedClassifier::Activations WeightedClassifier::forward(double x) const {
  Activations at;
  for (std::size_t j = 0; j < kHidden; ++j)
    at.h1[j] = std::max(0.0, weights_[kW1 + j] * x + weights_[kB1 + j]);
  std::copy_n(weights_.begin() + kB2, kHidden, at.h2.begin());
  for (std::size_t i = 0; i < kHidden; ++i) {
    for (std::size_t j = 0; j < kHidden; ++j) at.h2[j] += weights_[kW2 + i * kHidden + j] * at.h1[i];
  }
  at.logit = weights_[kB3];
  for (std::size_t j = 0; j < kHidden; ++j) {
    at.h2[j] = std::max(0.0, at.h2[j]);
    at.logit += weights_[kW3 + j] * at.h2[j];
  }
  return at;
}

void WeightedClassifier::backward(double x, const Activations& at, double d_logit,
                                  Parameters& gradient) const {
  std::array<double, kHidden> d2;
  gradient[kB3] += d_logit;
  for (std::size_t j = 0; j < kHidden; ++j) {
    gradient[kW3 + j] += d_logit * at.h2[j];
    d2[j] = at.h2[j] > 0.0 ? d_logit * weights_[kW3 + j] : 0.0;
    gradient[kB2 + j] += d2[j];
  }
  for (std::size_t i = 0; i < kHidden; ++i) {
    if (!(at.h1[i] > 0.0)) continue;
    double d1 = 0.0;
    for (std::size_t j = 0; j < kHidden; ++j) {
      gradient[kW2 + i * kHidden + j] += d2[j] * at.h1[i];
      d1 += d2[j] * weights_[kW2 + i * kHidden + j];
    }
    gradient[kW1 + i] += d1 * x;
    gradient[kB1 + i] += d1;
  }
}

void WeightedClassifier::adam_step(const Parameters& gradient, double learning_rate) {
  step_ += 1.0;
  const double rate = learning_rate / (1.0 - std::pow(kBeta1, step_));
  const double correction = 1.0 / (1.0 - std::pow(kBeta2, step_));
  for (std::size_t i = 0; i < kSize; ++i) {
    m_[i] = kBeta1 * m_[i] + (1.0 - kBeta1) * gradient[i];
    v_[i] = kBeta2 * v_[i] + (1.0 - kBeta2) * gradient[i] * gradient[i];
    weights_[i] -= rate * m_[i] / (std::sqrt(v_[i] * correction) + kEpsilon);
  }
}

WeightedClassifier::Parameters WeightedClassifier::gradient_of(std::span<const std::uint32_t> pairs,
                                                               std::span<const double> ones,
                                                               std::span<const double> zeros,
                                                               std::span<const double> zero_weights) const {
  const double scale = 0.5 / static_cast<double>(pairs.size());
  Parameters gradient{};
  for (const std::uint32_t pair : pairs) {
    const Activations one = forward(ones[pair]), zero = forward(zeros[pair]);
    backward(ones[pair], one, -scale * sigmoid(-one.logit), gradient);
    backward(zeros[pair], zero, scale * zero_weights[pair] * sigmoid(zero.logit), gradient);
  }
  return gradient;
}

double WeightedClassifier::train(std::span<const double> ones, std::span<const double> zeros,
                                 std::span<const double> zero_weights,
                                 const WeightedClassifierOptions& options) {
  std::vector<std::uint32_t> pairs(ones.size());
  std::iota(pairs.begin(), pairs.end(), 0u);
  random_.shuffle(pairs);
  const auto kept = std::max<std::size_t>(
      1, static_cast<std::size_t>(options.training_share * static_cast<double>(pairs.size())));
  const std::span<std::uint32_t> training = std::span(pairs).first(kept);
  for (int epoch = 0; epoch < options.epochs && !(options.stop && options.stop->requested()); ++epoch) {
    random_.shuffle(training);
    for (std::size_t first = 0; first < kept; first += options.batch_rows) {
      const auto batch = training.subspan(first, std::min(options.batch_rows, kept - first));
      adam_step(gradient_of(batch, ones, zeros, zero_weights), options.learning_rate);
    }
  }
  double loss = 0.0;
  for (const std::uint32_t pair : std::span(pairs).subspan(kept))
    loss += softplus(-score(ones[pair])) + zero_weights[pair] * softplus(score(zeros[pair]));
  return loss / (2.0 * static_cast<double>(pairs.size() - kept));  // 0/0 is nan
}

double WeightedClassifier::score(double x) const { return forward(x).logit; }

}  // namespace nrec
