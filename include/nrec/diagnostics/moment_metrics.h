#pragma once

#include <vector>

#include "nrec/core/array.h"

namespace nrec {

/// How far means and standard deviations of samples Q are from those of a reference P, per column and in one number.
struct MomentErrors {
  std::vector<double> mean_error;  // [D] (mean Q - mean P) / sd P
  std::vector<double> sd_error;    // [D] sd Q / sd P - 1
  double posterior_mean_error =
      0.0;  // mean of mean_error, signs kept: errors of columns cancel, as published
  double posterior_variance_ratio = 0.0;  // mean over columns of var Q / var P
  double absolute_mean_error = 0.0;       // mean of |mean_error|
  double absolute_sd_error = 0.0;         // mean of |sd_error|
};

/// Errors of means and standard deviations (divisor n - 1), in units of the reference's sd.
///
/// Shapes   reference P [n, D], samples Q [m, D]
/// Errors   ShapeError: different or no columns, fewer than 2 rows; DomainError: a value that is not finite, a column that
///          is constant in reference
/// Numerics double; two passes per column
/// Source   [Lueckmann2021, appendix]
MomentErrors moment_errors(MatrixView<const double> reference, MatrixView<const double> samples);

/// Kullback-Leibler divergence between the normal distributions that have means and covariances of the two sets.
///
///   KL(P || Q) = (tr(S_Q^-1 S_P) + (m_Q - m_P)' S_Q^-1 (m_Q - m_P) - D + log det S_Q - log det S_P) / 2
///
/// Both sets are first scaled by mean and sd of the reference, which changes nothing but rounding. It sees means and
/// covariances only: 0 does not mean that the distributions are equal.
///
/// Shapes   reference P [n, D], samples Q [m, D]
/// Units    nats; nan where a covariance is not positive definite (no more rows than columns, or columns that are functions
///          of others)
/// Errors   as moment_errors
/// Source   [Lueckmann2021, appendix]
double gaussian_kl(MatrixView<const double> reference, MatrixView<const double> samples);

}  // namespace nrec
