#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace nrec {

/// Importance weights with their largest replaced by what a generalised Pareto distribution expects of them.
///
/// Only the tail is stored: everything else keeps the weight it has. S is the number of weights.
struct ParetoSmoothing {
  std::size_t num_weights = 0;     // S, zero weights included
  std::vector<std::size_t> rows;   // of the tail, ascending
  std::vector<double> log_weight;  // of the tail, smoothed, on the scale of the raw ones
  double log_sum = 0.0;            // log of the sum of all smoothed weights
  double ess = 0.0;                // 1 / sum of squared normalised smoothed weights; 0 when all weights are 0
  /// Shape of the tail: infinite when it cannot be judged (fewer than 5 weights above the cutoff), minus infinity when the
  /// largest weights are all equal: there is no tail.
  double k_hat = 0.0;
};

/// Importance weights as they are, and the Pareto fit to their tail as their judge.
///
/// Samplers and log Z use the raw weights: where a posterior is much narrower than the prior, the "tail" holds nearly all of the
/// weight, and what a Pareto distribution makes of that is biased by more than its error (docs/methods/sampling.md).
struct WeightQuality {
  std::size_t num_weights = 0;  // S, zero weights included
  double log_sum = 0.0;         // log of the sum of the weights
  double ess = 0.0;             // 1 / sum of squared normalised weights; 0 when all weights are 0
  double k_hat = 0.0;           // of ParetoSmoothing

  double threshold() const;
  bool is_reliable() const { return k_hat <= threshold(); }
};

/// Shapes, cost and numerics as smooth_weights().
WeightQuality judge_weights(std::span<const double> log_weights);

/// Largest k_hat with which the smoothed weights can be used as they are.
///
///   min(1 - 1 / log10(S), 0.7)
///
/// Source   [Vehtari2024]
double k_hat_threshold(std::size_t num_weights);

/// Smooths the largest ceil(min(S / 5, 3 sqrt(S))) weights.
///
///   tail - cutoff ~ generalised Pareto (k, sigma); the j-th smallest of M becomes its (j - 1/2) / M quantile, at most the
///   largest raw weight. k and sigma are the profile-likelihood posterior means of Zhang and Stephens, k with a weak
///   prior at 1/2 worth 10 observations.
///
/// Shapes   log_weights [S], S >= 1, numbers or minus infinity (nan and plus infinity are not checked)
/// Numerics equals ArviZ's psislw to 1e-8, except that a flat tail has k_hat minus infinity (infinity there)
/// Cost     O(S log M), memory O(M)
/// Source   [Vehtari2024], [Zhang2009]
ParetoSmoothing smooth_weights(std::span<const double> log_weights);

/// Calls use(row, smoothed log weight) for all rows in order; on the scale of the raw ones.
template <class Use>
void for_each_smoothed(std::span<const double> log_weights, const ParetoSmoothing& smoothing,
                       const Use& use) {
  std::size_t next = 0;  // in the tail
  for (std::size_t i = 0; i < log_weights.size(); ++i) {
    const bool in_tail = next < smoothing.rows.size() && smoothing.rows[next] == i;
    use(i, in_tail ? smoothing.log_weight[next++] : log_weights[i]);
  }
}

}  // namespace nrec
