#include "commands/training_rows.h"

#include <algorithm>

namespace nrec {

namespace {

/// Whether every column of x has exactly the range of the training, and there is a column that is not constant.
bool has_ranges_of_training(const RatioEstimator& estimator, const Matrix<double>& x) {
  bool is_varied = false;
  for (std::size_t j = 0; j < x.cols(); ++j) {
    double low = x(0, j), high = x(0, j);
    for (std::size_t i = 1; i < x.rows(); ++i) {
      low = std::min(low, x(i, j));
      high = std::max(high, x(i, j));
    }
    if (low != estimator.x_low[j] || high != estimator.x_high[j]) return false;
    is_varied = is_varied || low < high;
  }
  return is_varied;
}

}  // namespace

std::string training_rows_sentence(const RatioEstimator& estimator, const SimulationSet& simulations) {
  if (!has_ranges_of_training(estimator, simulations.x)) return "";
  return simulations.source +
         ": every column of x has exactly the smallest and largest number of the simulations that the "
         "estimator was trained "
         "on, so these are the same rows; a network does better on rows that it has seen. Simulate new ones "
         "for the check";
}

}  // namespace nrec
