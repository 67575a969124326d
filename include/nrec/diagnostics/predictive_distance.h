#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nrec/core/array.h"
#include "nrec/core/thread_pool.h"
#include "nrec/simulation/simulator.h"

namespace nrec {

/// Median Euclidean distance of the rows of x from x_o, unscaled; the mean of the middle two for an even number.
///
/// Shapes   x [n, M], x_o [M]
/// Errors   ShapeError: other lengths, no rows. A distance that is not a number counts as infinitely far.
/// Source   [Lueckmann2021, appendix]
double median_distance(MatrixView<const double> x, std::span<const double> x_o);

/// What posterior predictive simulations said.
struct PredictiveDistance {
  double median = 0.0;         // infinite when half of them failed
  std::size_t num_failed = 0;  // simulations that failed; they count as infinitely far
};

/// Simulates once from every theta and measures the median distance from the observation.
///
/// Large columns of x dominate it: it is a distance of raw data, not of distributions. Row i is a pure function of
/// (seed, i): use a seed that no training simulation has.
///
/// Shapes   theta [n, D], x_o [M]
/// Errors   ShapeError: no rows, other lengths
/// Cost     n simulations on all threads of the pool
PredictiveDistance median_predictive_distance(const Simulator& simulator, MatrixView<const double> theta,
                                              std::span<const double> x_o, std::uint64_t seed,
                                              ThreadPool& pool);

}  // namespace nrec
