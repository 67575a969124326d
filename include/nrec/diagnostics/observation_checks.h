#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/thread_pool.h"
#include "nrec/training/standardiser.h"

namespace nrec {

/// How far an observation is from simulations.
struct ObservationDistance {
  double distance = 0.0;         // mean distance to the nearest simulations, in scaled columns
  double median_distance = 0.0;  // of the simulations among themselves
  double p_value = 1.0;          // share of points at least as far out, the observation among them
  std::size_t num_neighbours = 0;
  std::size_t num_rows = 0;
};

/// Is x_o like the simulations: its mean distance to its nearest neighbours among them, against the same number of every simulation
/// (neighbours: all other points, x_o included).
///
/// All n + 1 points are treated alike, so that the p-value is at most a with probability at most a + 1/(n + 1) if x_o is one more
/// draw of p(x). Of an observation beyond all n it is 1/(n + 1) times what a Pareto tail, fitted to the farthest tenth, says of
/// going so much farther: among many observations, one that is far out has a p-value that survives a correction.
///
/// Columns are scaled by median and quartiles of the simulations; 5 neighbours, with fewer than 50 rows one.
///
/// Shapes   x_o [M]; x [n, M], finite
/// Errors   ShapeError: columns differ, or fewer than 10 rows
/// Cost     O(n^2 M) on all threads; at most the first 4,000 rows are used
/// Source   conformal p-value of a nearest-neighbour score; [Weissman1978] beyond; docs/methods/calibration.md
ObservationDistance observation_distance(std::span<const double> x_o, MatrixView<const double> x,
                                         ThreadPool& pool);

/// The same for many observations: what the simulations are to each other is found once.
class ObservationDistances {
 public:
  /// Shapes   x [n, M], finite.  Errors   ShapeError: fewer than 10 rows.  Cost   O(n^2 M) on all threads
  ObservationDistances(MatrixView<const double> x, ThreadPool& pool);

  /// Of one observation. Shapes   x_o [M].  Errors   ShapeError.  Cost   O(n M)
  ObservationDistance at(std::span<const double> x_o) const;

 private:
  Standardiser scale_;
  Matrix<float> points_;        // [n, M] scaled
  std::size_t num_neighbours_;  // k
  Matrix<double> nearest_;      // [n, k] squared distances to the nearest others, ascending
};

/// Where the observation stands among data simulated from its posterior.
struct PredictiveCheck {
  std::vector<double> below;     // [M] share of simulated values below x_o, equal ones counting one half
  std::vector<double> tail;      // [M] two-sided tail probability, at least 2/(n + 1), at most 1
  double p_value = 1.0;          // of both tests together
  double column_p_value = 1.0;   // of the column where x_o lies farthest out, their number corrected for
  std::size_t worst_column = 0;  // where it is
  double joint_p_value = 1.0;    // of all columns together; 1 where there is one
  double joint_distance = 0.0, joint_median = 0.0;  // of x_o, and of the simulated data
  std::size_t num_rows = 0;
};

/// Posterior predictive check: tail probabilities of every column of x_o among x simulated at posterior draws.
///
/// Two tests, of which the smaller p-value is doubled. Columns together: the share of all n + 1 points whose Mahalanobis distance is
/// as large as that of x_o, which sees combinations of columns that the simulations do not have though each column is common.
/// Single columns: the share of points that lie as far out in that of their columns where they lie farthest out
/// (distance from the median in units of the 90 % or 10 % quantile's): columns may depend on each other as they like, and it can be
/// as small as 1/(n + 1) however many there are, and smaller where a Pareto tail says so as for observation_distance(). Both are
/// conservative: the posterior has seen x_o, so that values in the middle are common and far ones rarer than for new data.
///
/// Shapes   x_o [M]; predicted [n, M], n >= 1
/// Errors   ShapeError
/// Source   [Rubin1984]
PredictiveCheck predictive_check(std::span<const double> x_o, MatrixView<const double> predicted);

/// Where the rows of one data set stand among data simulated from its posterior.
struct PredictiveRowsCheck {
  std::vector<double> ks;        // [M] largest difference of the two distribution functions
  std::vector<double> p_values;  // [M] of each column alone
  double p_value = 1.0;          // smallest after Holm's correction
  std::size_t worst_column = 0;  // where it is
  std::size_t num_rows = 0;
};

/// Posterior predictive check of R independent rows at the same parameters: the distribution of every column over the rows against
/// that of x simulated at posterior draws (two-sample Kolmogorov-Smirnov). It sees wrong noise that a mean does not.
///
/// Shapes   x_o [R, M], R >= 2; predicted [n, M], n >= 1
/// Errors   ShapeError
PredictiveRowsCheck predictive_check_of_rows(MatrixView<const double> x_o,
                                             MatrixView<const double> predicted);

}  // namespace nrec
