#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nrec/core/random.h"
#include "nrec/core/stop.h"

namespace nrec {

/// How a WeightedClassifier is trained.
struct WeightedClassifierOptions {
  int epochs = 100;
  std::size_t batch_rows = 256;  // of each label
  double learning_rate = 1e-3;
  double training_share = 0.9;        // of the pairs; the others judge the loss
  const StopRequest* stop = nullptr;  // ends it after an epoch
};

/// Classifier 1 -> 10 -> 10 -> 1 with ReLU and a logistic output, whose rows of label 0 have weights.
///
///   loss = 1/(2 B) sum over the B pairs of a batch of [ softplus(-z(one)) + weight softplus(z(zero)) ]
///
/// SmallMlp has no weights, and resampling by weight is not the published form. Adam without penalty; weights and biases start from
/// U(-1/sqrt(fan_in), 1/sqrt(fan_in)).
///
/// Numerics float64; a pure function of data, options and `random`
/// Cost     about 800 flop a row and epoch
/// Source   [Miller2022, sec. 3.3], [Kingma2014]
class WeightedClassifier {
 public:
  explicit WeightedClassifier(RandomStream random);

  /// Row i of both labels are a pair: they are in the training share, and in a batch, together. Returns the loss of the pairs
  /// that were not trained on (nan if there are none).
  ///
  /// Shapes   ones, zeros, zero_weights [n], n >= 2
  double train(std::span<const double> ones, std::span<const double> zeros,
               std::span<const double> zero_weights, const WeightedClassifierOptions& options);

  /// Logit of label 1.
  double score(double x) const;

 private:
  static constexpr std::size_t kHidden = 10;
  static constexpr std::size_t kW1 = 0, kB1 = kW1 + kHidden, kW2 = kB1 + kHidden,
                               kB2 = kW2 + kHidden * kHidden, kW3 = kB2 + kHidden, kB3 = kW3 + kHidden,
                               kSize = kB3 + 1;
  using Parameters = std::array<double, kSize>;
  struct Activations {
    std::array<double, kHidden> h1, h2;
    double logit;
  };

  Activations forward(double x) const;
  void backward(double x, const Activations& at, double d_logit, Parameters& gradient) const;
  /// Gradient of the mean loss of a batch of pairs.
  Parameters gradient_of(std::span<const std::uint32_t> pairs, std::span<const double> ones,
                         std::span<const double> zeros, std::span<const double> zero_weights) const;
  void adam_step(const Parameters& gradient, double learning_rate);

  RandomStream random_;
  Parameters weights_{}, m_{}, v_{};
  double step_ = 0.0;
};

}  // namespace nrec
