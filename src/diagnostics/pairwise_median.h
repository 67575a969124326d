#pragma once

#include "nrec/core/array.h"
#include "nrec/core/thread_pool.h"

namespace nrec {

/// Squared Euclidean distance of two rows.
inline double squared_distance(const double* a, const double* b, std::size_t cols) {
  double sum = 0.0;
  for (std::size_t j = 0; j < cols; ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
  return sum;
}

/// Median of the distances of all pairs i < j of rows, the lower of the two middle ones when their number is
/// even.
///
/// Shapes   points [n >= 2, d], finite
/// Numerics exact selection among the n (n - 1) / 2 rounded distances; the same for any number of threads
/// Cost     2 to 5 passes over the pairs; at most 32 MB beyond a 0.5 MB table per thread, whatever n
double pairwise_median(const Matrix<double>& points, ThreadPool& pool);

}  // namespace nrec
