#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace nrec {

/// Area under a weighted ROC curve with its error.
struct WeightedAuc {
  double auc = 0.5;
  double standard_error = 0.0;
  double p_value = 1.0;  // of the area being 1/2 or less, one-sided, normal

  /// ROC curve at 101 false-positive rates 0, 0.01 .. 1: weight of ones at or above the threshold.
  std::vector<double> true_positive;
};

/// Probability that a row of label 1 scores higher than a row of label 0, ties counting one half, rows weighted.
///
///   auc = sum_i sum_j v_i w_j (1[a_i > b_j] + 1[a_i = b_j]/2) / (sum v sum w)
///
/// Row i of both labels may depend on each other (they share an x): the standard error is that of the sum of their influences, over
/// rows.
///
/// Shapes   ones a [n], zeros b [n], one_weights v [n], zero_weights w [n]
/// Units    weights >= 0, finite, not all 0
/// Errors   ShapeError: lengths differ, or fewer than 2 rows; DomainError: a weight is negative or not finite, all are 0, a score is nan
/// Cost     O(n log n)
/// Source   [DeLong1988] with weights; docs/methods/calibration.md
WeightedAuc weighted_auc(std::span<const double> ones, std::span<const double> zeros,
                         std::span<const double> one_weights, std::span<const double> zero_weights);

}  // namespace nrec
