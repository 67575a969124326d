#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/thread_pool.h"

namespace nrec {

/// How far an observation is from simulations.
struct ObservationDistance {
  double distance = 0.0;         // mean distance to the nearest simulations, in scaled columns
  double median_distance = 0.0;  // of the simulations among themselves
  double p_value = 1.0;  // share of points at least as far out, the observation among them: in [1/(n + 1), 1]
  std::size_t num_neighbours = 0;
  std::size_t num_rows = 0;
};

/// Is x_o like the simulations: its mean distance to its nearest neighbours among them, against the same number of every simulation
/// (neighbours: all other points, x_o included).
///
/// All n + 1 points are treated alike, so that the p-value is at most a with probability at most a + 1/(n + 1) if x_o is one more
/// draw of p(x). Columns are scaled by median and quartiles of the simulations; 5 neighbours, fewer rows: one.
///
/// Shapes   x_o [M]; x [n, M], finite
/// Errors   ShapeError: columns differ, or fewer than 10 rows
/// Cost     O(n^2 M) on all threads; at most the first 4,000 rows are used
/// Source   conformal p-value of a nearest-neighbour score; docs/methods/calibration.md
ObservationDistance observation_distance(std::span<const double> x_o, MatrixView<const double> x,
                                         ThreadPool& pool);

/// Where the observation stands among data simulated from its posterior.
struct PredictiveCheck {
  std::vector<double> below;     // [M] share of simulated values below x_o, equal ones counting one half
  std::vector<double> tail;      // [M] two-sided tail probability, at least 2/(n + 1), at most 1
  double p_value = 1.0;          // smallest tail after Holm's correction
  std::size_t worst_column = 0;  // where it is
  std::size_t num_rows = 0;
};

/// Posterior predictive check: tail probabilities of every column of x_o among x simulated at posterior draws.
///
/// They are conservative: the posterior has seen x_o, so that values near 1/2 are common and small ones rarer than uniform.
///
/// Shapes   x_o [M]; predicted [n, M], n >= 1
/// Errors   ShapeError
/// Source   [Rubin1984]
PredictiveCheck predictive_check(std::span<const double> x_o, MatrixView<const double> predicted);

}  // namespace nrec
