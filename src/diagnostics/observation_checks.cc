#include "nrec/diagnostics/observation_checks.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>

#include "core/cholesky.h"
#include "core/sorted_quantile.h"
#include "nrec/core/error.h"
#include "nrec/diagnostics/uniformity.h"

namespace nrec {

namespace {

constexpr std::size_t kNeighbours = 5;
constexpr std::size_t kRowsForNeighbours = 50;  // with fewer, the fifth neighbour is anywhere
constexpr std::size_t kLeastRows = 10;
constexpr std::size_t kMostRows = 4000;

double squared_distance(std::span<const float> a, std::span<const float> b) {
  double square = 0.0;
  for (std::size_t j = 0; j < a.size(); ++j) {
    const double difference = static_cast<double>(a[j]) - static_cast<double>(b[j]);
    square += difference * difference;
  }
  return square;
}

/// The smallest squares, ascending, into `nearest`.
void find_smallest(std::vector<double>& squares, std::span<double> nearest) {
  const auto end = squares.begin() + static_cast<std::ptrdiff_t>(nearest.size());
  std::partial_sort(squares.begin(), end, squares.end());
  std::copy(squares.begin(), end, nearest.begin());
}

/// Mean distance to the nearest points, one more being `square` away. Shapes   nearest ascending
double mean_distance(std::span<const double> nearest, double square) {
  const auto closer = std::lower_bound(nearest.begin(), nearest.end(), square);
  double sum = 0.0;
  for (auto value = nearest.begin(); value != closer; ++value) sum += std::sqrt(*value);
  if (closer != nearest.end()) {
    sum += std::sqrt(square);  // the farthest of them is no neighbour any more
    for (auto value = closer; value + 1 != nearest.end(); ++value) sum += std::sqrt(*value);
  }
  return sum / static_cast<double>(nearest.size());
}

constexpr double kTail = 0.1;          // share of scores that a tail is fitted to
constexpr std::size_t kLeastTail = 5;  // scores

/// p-value of a score among n others that it is exchangeable with: the share of all n + 1 that are as large. Beyond the largest, where that
/// says 1/(n + 1) of any score, it falls on as the Pareto tail fitted to the largest tenth of the others by Hill's estimator:
///
///   p = (s / s_max)^(-1/xi) / (n + 1),   xi = mean log(s_i / s_k) over the k largest
///
/// Lighter tails than Pareto's get too large a p-value [Weissman1978].
double tail_p_value(std::vector<double> others, double score) {
  const double all = static_cast<double>(others.size() + 1);
  const auto as_large = std::count_if(others.begin(), others.end(), [&](double s) { return s >= score; });
  const auto k = static_cast<std::size_t>(kTail * static_cast<double>(others.size()));
  const double share = static_cast<double>(as_large + 1) / all;
  if (as_large > 0 || k < kLeastTail || !std::isfinite(score)) return share;
  std::partial_sort(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(k + 1), others.end(),
                    std::greater<>());
  double xi = 0.0;
  for (std::size_t i = 0; i < k; ++i) xi += std::log(others[i] / others[k]) / static_cast<double>(k);
  if (!(others[k] > 0.0) || !(xi > 0.0) || !std::isfinite(xi)) return share;
  return share * std::pow(score / others[0], -1.0 / xi);
}

}  // namespace

ObservationDistances::ObservationDistances(MatrixView<const double> all, ThreadPool& pool)
    : num_neighbours_(all.rows < kRowsForNeighbours ? 1 : kNeighbours) {
  if (all.rows < kLeastRows)
    throw ShapeError("observation_distance: x is [" + std::to_string(all.rows) + ", " +
                     std::to_string(all.cols) + "]; at least " + std::to_string(kLeastRows) +
                     " rows are needed");
  const MatrixView<const double> x = all.middle_rows(0, std::min(all.rows, kMostRows));
  StandardiserReport report;
  scale_ = fit_standardiser(x, StandardiserMethod::robust, report);
  points_ = Matrix<float>(x.rows, x.cols);
  scale_.apply(x, points_);
  nearest_ = Matrix<double>(x.rows, num_neighbours_);
  pool.run(x.rows, [&](std::size_t i, int) {
    std::vector<double> squares;
    squares.reserve(points_.rows() - 1);
    for (std::size_t k = 0; k < points_.rows(); ++k) {
      if (k != i)
        squares.push_back(squared_distance(std::as_const(points_).row(i), std::as_const(points_).row(k)));
    }
    find_smallest(squares, nearest_.row(i));
  });
}

ObservationDistance ObservationDistances::at(std::span<const double> x_o) const {
  const std::size_t n = points_.rows();
  if (x_o.size() != points_.cols())
    throw ShapeError("observation_distance: x_o has " + std::to_string(x_o.size()) + " numbers but x has " +
                     std::to_string(points_.cols()) + " columns");
  Matrix<float> point(1, x_o.size());
  scale_.apply({x_o.data(), 1, x_o.size()}, point);
  std::vector<double> squares(n), distances(n);
  for (std::size_t i = 0; i < n; ++i) {
    squares[i] = squared_distance(std::as_const(point).row(0), points_.row(i));
    distances[i] = mean_distance(nearest_.row(i), squares[i]);
  }
  std::vector<double> nearest(num_neighbours_);
  find_smallest(squares, nearest);
  ObservationDistance result;
  result.num_rows = n;
  result.num_neighbours = num_neighbours_;
  result.distance = mean_distance(nearest, std::numeric_limits<double>::infinity());
  result.p_value = tail_p_value(distances, result.distance);
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(n / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  result.median_distance = *middle;
  return result;
}

ObservationDistance observation_distance(std::span<const double> x_o, MatrixView<const double> x,
                                         ThreadPool& pool) {
  return ObservationDistances(x, pool).at(x_o);
}

namespace {

/// How far out every value is, with its sign: its distance from the median over that of the 90 % or 10 % quantile on its side. Any
/// function that treats all values alike would do.
std::vector<double> outlyingness(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted_quantile(sorted, 0.5), low = median - sorted_quantile(sorted, 0.1),
               high = sorted_quantile(sorted, 0.9) - median;
  std::vector<double> out;
  for (const double value : values) {
    const double distance = value - median;
    // Where most values are one number, every other is as far out as can be.
    out.push_back(distance == 0.0 ? 0.0 : distance / (value > median ? high : low));
  }
  return out;
}

/// Mahalanobis distance of every row from the mean of all, by their covariance; long tails are drawn in first (asinh), so that few
/// rows do not make it. The more columns beside rows, the more the covariance is drawn to its diagonal; columns without spread and
/// those of infinite values are left out. Shapes   columns [M][n] as of outlyingness()
std::vector<double> joint_distances(std::vector<std::vector<double>> columns) {
  constexpr std::size_t kMostCorrelated = 500;  // columns; of more only their spreads count
  std::erase_if(columns, [](std::vector<double>& column) {
    double mean = 0.0, square = 0.0;
    for (double& value : column) {
      value = std::asinh(value);
      mean += value / static_cast<double>(column.size());
    }
    for (double& value : column) {
      value -= mean;
      square += value * value;
    }
    const double sd = std::sqrt(square / static_cast<double>(column.size()));
    for (double& value : column) value /= sd;
    return !std::isfinite(sd) || sd == 0.0;
  });
  const std::size_t dim = columns.size();
  if (dim == 0) return {};
  const std::size_t rows = columns[0].size();
  std::optional<Matrix<double>> lower;
  if (dim <= kMostCorrelated) {
    const double share = std::min(1.0, static_cast<double>(dim) / (5.0 * static_cast<double>(rows)));
    Matrix<double> covariance(dim, dim);
    for (std::size_t i = 0; i < dim; ++i) {
      covariance(i, i) = 1.0;
      for (std::size_t j = 0; j < i; ++j)
        covariance(i, j) = (1.0 - share) *
                           std::inner_product(columns[i].begin(), columns[i].end(), columns[j].begin(), 0.0) /
                           static_cast<double>(rows);
    }
    lower = cholesky_factor(covariance);
    if (!lower) return {};
  }
  std::vector<double> distances(rows), row(dim);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < dim; ++j) row[j] = columns[j][i];
    if (lower) solve_lower(*lower, row);
    distances[i] = std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
  }
  return distances;
}

/// Largest difference of two distribution functions.
double largest_difference(std::vector<double> a, std::vector<double> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  double largest = 0.0;
  auto in_a = a.begin();
  auto in_b = b.begin();
  while (in_a != a.end() && in_b != b.end()) {
    const double value = std::min(*in_a, *in_b);
    while (in_a != a.end() && *in_a == value) ++in_a;
    while (in_b != b.end() && *in_b == value) ++in_b;
    largest =
        std::max(largest, std::fabs(static_cast<double>(in_a - a.begin()) / static_cast<double>(a.size()) -
                                    static_cast<double>(in_b - b.begin()) / static_cast<double>(b.size())));
  }
  return largest;
}

std::vector<double> column_of(MatrixView<const double> rows, std::size_t j) {
  std::vector<double> column(rows.rows);
  for (std::size_t i = 0; i < rows.rows; ++i) column[i] = rows(i, j);
  return column;
}

/// Shapes   columns [M][n + 1], x_o the last point
void add_joint_test(std::vector<std::vector<double>> columns, PredictiveCheck& result) {
  std::vector<double> distances = joint_distances(std::move(columns));
  if (distances.empty()) return;
  result.joint_distance = distances.back();
  distances.pop_back();
  result.joint_p_value = tail_p_value(distances, result.joint_distance);
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  result.joint_median = *middle;
  result.p_value = std::min(1.0, 2.0 * std::min(result.column_p_value, result.joint_p_value));
}

}  // namespace

PredictiveCheck predictive_check(std::span<const double> x_o, MatrixView<const double> predicted) {
  if (x_o.size() != predicted.cols || predicted.rows == 0)
    throw ShapeError("predictive_check: x_o has " + std::to_string(x_o.size()) + " numbers, predicted is [" +
                     std::to_string(predicted.rows) + ", " + std::to_string(predicted.cols) +
                     "]; columns must be equal and rows at least one");
  PredictiveCheck result;
  result.num_rows = predicted.rows;
  const double n = static_cast<double>(predicted.rows);
  std::vector<double> farthest(predicted.rows + 1, 0.0);  // over columns; x_o is the last point
  std::vector<std::vector<double>> out;                   // [M][n + 1]
  for (std::size_t j = 0; j < x_o.size(); ++j) {
    std::vector<double> column = column_of(predicted, j);
    const auto below = std::count_if(column.begin(), column.end(), [&](double x) { return x < x_o[j]; });
    const auto equal = std::count(column.begin(), column.end(), x_o[j]);
    result.below.push_back((static_cast<double>(below) + 0.5 * static_cast<double>(equal)) / n);
    // x_o itself counts: no finite number of simulations can show a probability of 0.
    const double smaller = static_cast<double>(std::min(below + equal, std::ssize(column) - below) + 1);
    result.tail.push_back(std::min(1.0, 2.0 * smaller / (n + 1.0)));
    column.push_back(x_o[j]);
    out.push_back(outlyingness(column));
    if (std::fabs(out[j].back()) > farthest.back()) result.worst_column = j;
    for (std::size_t i = 0; i < farthest.size(); ++i)
      farthest[i] = std::max(farthest[i], std::fabs(out[j][i]));
  }
  const double of_x_o = farthest.back();
  farthest.pop_back();
  result.column_p_value = result.p_value = tail_p_value(std::move(farthest), of_x_o);
  if (x_o.size() > 1) add_joint_test(std::move(out), result);
  return result;
}

PredictiveRowsCheck predictive_check_of_rows(MatrixView<const double> x_o,
                                             MatrixView<const double> predicted) {
  if (x_o.cols != predicted.cols || predicted.rows == 0 || x_o.rows < 2)
    throw ShapeError("predictive_check_of_rows: x_o is [" + std::to_string(x_o.rows) + ", " +
                     std::to_string(x_o.cols) + "], predicted [" + std::to_string(predicted.rows) + ", " +
                     std::to_string(predicted.cols) +
                     "]; columns must be equal, rows of x_o at least two and of predicted at least one");
  PredictiveRowsCheck result;
  result.num_rows = predicted.rows;
  const double rows = static_cast<double>(x_o.rows), n = static_cast<double>(predicted.rows);
  for (std::size_t j = 0; j < x_o.cols; ++j) {
    result.ks.push_back(largest_difference(column_of(x_o, j), column_of(predicted, j)));
    result.p_values.push_back(kolmogorov_p_value(result.ks.back(), rows * n / (rows + n)));
  }
  const std::vector<double> adjusted = holm_adjusted(result.p_values);
  result.worst_column =
      static_cast<std::size_t>(std::min_element(adjusted.begin(), adjusted.end()) - adjusted.begin());
  result.p_value = adjusted[result.worst_column];
  return result;
}

}  // namespace nrec
