#include "nrec/diagnostics/observation_checks.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "nrec/core/error.h"
#include "nrec/diagnostics/uniformity.h"
#include "nrec/training/standardiser.h"

namespace nrec {

namespace {

constexpr std::size_t kNeighbours = 5;
constexpr std::size_t kRowsForNeighbours = 50;  // with fewer, the fifth neighbour is anywhere
constexpr std::size_t kLeastRows = 10;
constexpr std::size_t kMostRows = 4000;

/// x_o, then the rows of x, scaled.
Matrix<float> scaled_points(std::span<const double> x_o, MatrixView<const double> x) {
  StandardiserReport report;
  const Standardiser scale = fit_standardiser(x, StandardiserMethod::robust, report);
  Matrix<float> points(x.rows + 1, x.cols);
  scale.apply({x_o.data(), 1, x_o.size()}, points.view().middle_rows(0, 1));
  scale.apply(x, points.view().middle_rows(1, x.rows));
  return points;
}

/// Mean distance of one point to its nearest others.
double mean_distance(MatrixView<const float> points, std::size_t i, std::size_t neighbours) {
  std::vector<double> squares;
  squares.reserve(points.rows - 1);
  for (std::size_t k = 0; k < points.rows; ++k) {
    if (k == i) continue;
    double square = 0.0;
    for (std::size_t j = 0; j < points.cols; ++j) {
      const double difference = static_cast<double>(points(i, j)) - static_cast<double>(points(k, j));
      square += difference * difference;
    }
    squares.push_back(square);
  }
  std::partial_sort(squares.begin(), squares.begin() + static_cast<std::ptrdiff_t>(neighbours),
                    squares.end());
  double sum = 0.0;
  for (std::size_t k = 0; k < neighbours; ++k) sum += std::sqrt(squares[k]);
  return sum / static_cast<double>(neighbours);
}

}  // namespace

ObservationDistance observation_distance(std::span<const double> x_o, MatrixView<const double> x,
                                         ThreadPool& pool) {
  if (x_o.size() != x.cols || x.rows < kLeastRows)
    throw ShapeError("observation_distance: x_o has " + std::to_string(x_o.size()) + " numbers, x is [" +
                     std::to_string(x.rows) + ", " + std::to_string(x.cols) +
                     "]; columns must be equal and rows at least " + std::to_string(kLeastRows));
  const Matrix<float> points = scaled_points(x_o, x.middle_rows(0, std::min(x.rows, kMostRows)));
  ObservationDistance result;
  result.num_rows = points.rows() - 1;
  result.num_neighbours = result.num_rows < kRowsForNeighbours ? 1 : kNeighbours;
  std::vector<double> distances(points.rows());
  pool.run(points.rows(),
           [&](std::size_t i, int) { distances[i] = mean_distance(points, i, result.num_neighbours); });
  result.distance = distances[0];
  const auto as_far =
      std::count_if(distances.begin(), distances.end(), [&](double d) { return d >= result.distance; });
  result.p_value = static_cast<double>(as_far) / static_cast<double>(distances.size());
  const auto middle = distances.begin() + 1 + static_cast<std::ptrdiff_t>(result.num_rows / 2);
  std::nth_element(distances.begin() + 1, middle, distances.end());
  result.median_distance = *middle;
  return result;
}

PredictiveCheck predictive_check(std::span<const double> x_o, MatrixView<const double> predicted) {
  if (x_o.size() != predicted.cols || predicted.rows == 0)
    throw ShapeError("predictive_check: x_o has " + std::to_string(x_o.size()) + " numbers, predicted is [" +
                     std::to_string(predicted.rows) + ", " + std::to_string(predicted.cols) +
                     "]; columns must be equal and rows at least one");
  PredictiveCheck result;
  result.num_rows = predicted.rows;
  const double n = static_cast<double>(predicted.rows);
  for (std::size_t j = 0; j < x_o.size(); ++j) {
    double below = 0.0, equal = 0.0;
    for (std::size_t i = 0; i < predicted.rows; ++i) {
      below += predicted(i, j) < x_o[j];
      equal += predicted(i, j) == x_o[j];
    }
    result.below.push_back((below + 0.5 * equal) / n);
    // x_o itself counts: no finite number of simulations can show a probability of 0.
    const double smaller = std::min(below + equal, n - below) + 1.0;
    result.tail.push_back(std::min(1.0, 2.0 * smaller / (n + 1.0)));
  }
  const std::vector<double> adjusted = holm_adjusted(result.tail);
  for (std::size_t j = 0; j < adjusted.size(); ++j) {
    if (adjusted[j] >= result.p_value) continue;
    result.p_value = adjusted[j];
    result.worst_column = j;
  }
  return result;
}

}  // namespace nrec
