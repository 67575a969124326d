#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "nrec/core/array.h"

namespace nrec {

/// Which code runs a SmallMlp: `best` is the fastest one this processor has for that number of hidden units.
enum class SmallMlpTarget { best, ref, avx2, avx512 };

/// Whether this processor (and build) can run `target`; always true for best and ref. avx2 and avx512 give the same bits.
bool small_mlp_target_present(SmallMlpTarget target);

/// Constants of the Adam optimiser with an L2 penalty on the weights (not on the biases).
struct SmallMlpAdam {
  double learning_rate = 1e-3;   // > 0
  double beta1 = 0.9;            // in [0, 1)
  double beta2 = 0.999;          // in [0, 1)
  double epsilon = 1e-8;         // > 0, added to the uncorrected sqrt(v)
  double weight_penalty = 1e-4;  // >= 0
};

/// Binary classifier num_inputs -> hidden -> hidden -> 1 with ReLU and a logistic output, trained in float32
/// by Adam.
///
///   p(x) = sigmoid(w3 . relu(W2^T relu(W1^T x + b1) + b2) + b3)
///   loss = mean cross-entropy of the batch + 0.5 weight_penalty sum(weights^2) / batch rows
///   step t: g = (d sum of cross-entropies / d w + weight_penalty w) / rows
///           m, v = Adam averages; w -= learning_rate sqrt(1 - beta2^t)/(1 - beta1^t) m / (sqrt(v) + epsilon)
///
/// Numerics float32 with float32 sums (`ref`: sums in double); logistic and logarithm in double, the
/// probability rounded
///          to float32 and clipped to [eps, 1 - eps], eps = 2^-23, in the loss only; deterministic for one
///          target, and equal for avx2 and avx512
/// Cost     a step is about 6 rows (num_inputs hidden + hidden^2) flop and allocates nothing; memory about
///          20 (hidden^2 + num_inputs hidden) + 16 max_batch hidden bytes; one object belongs to one thread
/// Source   [Kingma2014, alg. 1 with the order of section 2]
class SmallMlp {
 public:
  /// Errors: ShapeError: a size of 0; UnsupportedError: target not present.
  SmallMlp(std::size_t num_inputs, std::size_t hidden, std::size_t max_batch, const SmallMlpAdam& adam = {},
           SmallMlpTarget target = SmallMlpTarget::best);
  ~SmallMlp();
  SmallMlp(SmallMlp&&) noexcept;
  SmallMlp& operator=(SmallMlp&&) noexcept;

  /// The code in use: "ref", "avx2" or "avx512".
  std::string_view target_name() const;

  /// Weights and biases as one array: W1 [num_inputs, hidden], b1 [hidden], W2 [hidden, hidden], b2 [hidden],
  /// w3 [hidden], b3.
  std::size_t num_parameters() const;
  /// Sets them and restarts Adam (t = 0). Errors: ShapeError: wrong length.
  void set_parameters(std::span<const float> values);
  /// Copies them out. Errors: ShapeError: wrong length.
  void get_parameters(std::span<float> values) const;

  /// One Adam step on rows `rows` of `features`; returns the loss before the step.
  ///
  /// Shapes features [N, num_inputs], labels [N] (0 or 1), rows [<= max_batch] indices below N
  /// Errors ShapeError: columns, labels or number of rows do not fit; the indices are not checked
  double train_step(MatrixView<const float> features, std::span<const std::uint8_t> labels,
                    std::span<const std::uint32_t> rows);

  /// Probability of label 1 for rows `rows` of `features`.
  ///
  /// Shapes features [N, num_inputs], rows [S], probabilities [S]
  /// Errors ShapeError: columns or lengths do not fit; the indices are not checked
  void predict(MatrixView<const float> features, std::span<const std::uint32_t> rows,
               std::span<float> probabilities);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nrec
