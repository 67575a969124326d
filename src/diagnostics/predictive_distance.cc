#include "nrec/diagnostics/predictive_distance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "nrec/core/error.h"

namespace nrec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void check(std::size_t rows, std::size_t columns, std::size_t expected) {
  if (rows > 0 && columns == expected) return;
  throw ShapeError("median_distance: x is [" + std::to_string(rows) + ", " + std::to_string(columns) +
                   "] but x_o has " + std::to_string(expected) +
                   " numbers; give at least one row of as many columns");
}

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const double upper = *middle;
  if (values.size() % 2 == 1) return upper;
  return 0.5 * (*std::max_element(values.begin(), middle) + upper);
}

double distance(std::span<const double> x, std::span<const double> x_o) {
  double square = 0.0;
  for (std::size_t j = 0; j < x.size(); ++j) square += (x[j] - x_o[j]) * (x[j] - x_o[j]);
  return std::isnan(square) ? kInfinity : std::sqrt(square);
}

}  // namespace

double median_distance(MatrixView<const double> x, std::span<const double> x_o) {
  check(x.rows, x.cols, x_o.size());
  std::vector<double> distances(x.rows);
  for (std::size_t i = 0; i < x.rows; ++i) distances[i] = distance(x.row(i), x_o);
  return median_of(distances);
}

PredictiveDistance median_predictive_distance(const Simulator& simulator, MatrixView<const double> theta,
                                              std::span<const double> x_o, std::uint64_t seed,
                                              ThreadPool& pool) {
  check(theta.rows, simulator.dim_x(), x_o.size());
  Matrix<double> x(theta.rows, x_o.size());
  std::vector<RowStatus> status(theta.rows);
  simulate_rows(simulator, seed, 0, theta, x, status, pool);
  PredictiveDistance result;
  std::vector<double> distances(theta.rows, kInfinity);
  for (std::size_t i = 0; i < theta.rows; ++i) {
    if (status[i] == RowStatus::ok) {
      distances[i] = distance(x.row(i), x_o);
    } else {
      ++result.num_failed;
    }
  }
  result.median = median_of(distances);
  return result;
}

}  // namespace nrec
