#pragma once

#include <cstddef>

#include "nrec/core/array.h"
#include "nrec/core/thread_pool.h"

namespace nrec {

/// How the maximum mean discrepancy is computed.
struct MmdOptions {
  bool z_score = false;      // scale both sets by mean and sd (n - 1) of the reference, per column
  std::size_t max_rows = 0;  // use the first max_rows rows of each set; 0 = all
  double bandwidth = 0.0;    // s of the kernel, > 0; 0 = median distance within the reference
};

/// The maximum mean discrepancy of two sample sets.
struct MmdSummary {
  double bandwidth = 0.0;  // s, in the units of the columns
  double mmd2 = 0.0;       // unbiased, may be negative; 0 = same distribution
};

/// Unbiased squared maximum mean discrepancy with one Gaussian kernel.
///
///   k(a, b) = exp(-|a - b|^2 / (2 s^2)), s = median of the distances between reference rows i < j (lower
///   middle value) mmd2 = mean_{i != j} k(P_i, P_j) + mean_{i != j} k(Q_i, Q_j) - 2 mean_{i, j} k(P_i, Q_j)
///
/// Shapes   reference P [n, d], samples Q [m, d]
/// Errors   ShapeError: different or no columns, fewer than 2 rows; DomainError: a value that is not finite
/// (row and column
///          named), a bandwidth that is negative, nan or infinite, a median distance of 0 or beyond double,
///          a column that is constant in reference while z_score is on
/// Numerics double, the median is exact; the same bits for any number of threads on one machine (exponentials are those of the
///          C library, several at a time where it can)
/// Cost     O((n + m)^2 d), 2 (n + m) d doubles and at most 32 MB; 10 000 + 10 000 rows take a second or two.
///          Not reentrant for one pool.
/// Source   [Gretton2012, eq. 3]
MmdSummary mmd(MatrixView<const double> reference, MatrixView<const double> samples,
               const MmdOptions& options, ThreadPool& pool);

}  // namespace nrec
