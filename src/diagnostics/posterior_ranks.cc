#include "nrec/diagnostics/posterior_ranks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "nrec/core/error.h"

namespace nrec {

double randomised_rank(std::span<const double> values, std::span<const double> weights, double uniform) {
  if (values.empty() || values.size() != weights.size()) {
    throw ShapeError("randomised_rank: there are " + std::to_string(values.size()) + " values and " +
                     std::to_string(weights.size()) + " weights; there must be as many, at least one");
  }
  double below = 0.0, equal = 0.0, total = 0.0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (values[k] < values[0]) below += weights[k];
    if (values[k] == values[0]) equal += weights[k];
    total += weights[k];
  }
  return std::clamp((below + uniform * equal) / total, 0.0, 1.0);
}

namespace {

struct Column {
  double low, high, mean, sd;
};

Column describe_column(MatrixView<const double> theta, std::span<const double> weights, std::size_t j) {
  Column column{theta(0, j), theta(0, j), 0.0, 0.0};
  double total = 0.0, square = 0.0;
  for (std::size_t k = 0; k < theta.rows; ++k) {
    column.low = std::min(column.low, theta(k, j));
    column.high = std::max(column.high, theta(k, j));
    if (weights[k] <= 0.0) continue;
    total += weights[k];
    const double step = theta(k, j) - column.mean;
    column.mean += step * weights[k] / total;
    square += weights[k] * step * (theta(k, j) - column.mean);
  }
  column.sd = std::sqrt(square / total);
  // All weight on one point leaves no scale but that of the box.
  if (!(column.sd > 0.0)) column.sd = column.high > column.low ? column.high - column.low : 1.0;
  return column;
}

}  // namespace

ReferenceDistances reference_distances(MatrixView<const double> theta, std::span<const double> weights,
                                       RandomStream& random) {
  ReferenceDistances result{std::vector<double>(theta.rows, 0.0), {}};
  double length = 0.0;
  for (std::size_t j = 0; j < theta.cols; ++j) {
    const Column column = describe_column(theta, weights, j);
    const double reference = column.low + random.uniform() * (column.high - column.low);
    result.direction.push_back((reference - column.mean) / column.sd);
    length = std::hypot(length, result.direction.back());
    for (std::size_t k = 0; k < theta.rows; ++k) {
      const double difference = (theta(k, j) - reference) / column.sd;
      result.squares[k] += difference * difference;
    }
  }
  for (double& component : result.direction) component = length > 0.0 ? component / length : 0.0;
  return result;
}

PosteriorRanks posterior_ranks(MatrixView<const double> theta, std::span<const double> log_weights,
                               std::span<const double> log_density, RandomStream& random) {
  if (theta.rows == 0 || log_weights.size() != theta.rows || log_density.size() != theta.rows) {
    throw ShapeError("posterior_ranks: there are " + std::to_string(theta.rows) + " thetas, " +
                     std::to_string(log_weights.size()) + " weights and " +
                     std::to_string(log_density.size()) + " densities; there must be as many, at least one");
  }
  const double top = *std::max_element(log_weights.begin(), log_weights.end());
  if (!std::isfinite(top))
    throw DomainError("posterior_ranks: no point has a finite weight, the largest is " + std::to_string(top));
  std::vector<double> weights(theta.rows), values(theta.rows);
  double total = 0.0;
  for (std::size_t k = 0; k < theta.rows; ++k) total += weights[k] = std::exp(log_weights[k] - top);
  PosteriorRanks ranks;
  ranks.own_share = weights[0] / total;
  for (std::size_t j = 0; j < theta.cols; ++j) {
    for (std::size_t k = 0; k < theta.rows; ++k) values[k] = theta(k, j);
    ranks.parameter.push_back(randomised_rank(values, weights, random.uniform()));
  }
  for (std::size_t k = 0; k < theta.rows; ++k) values[k] = -log_density[k];
  ranks.density = randomised_rank(values, weights, random.uniform());
  ReferenceDistances distances = reference_distances(theta, weights, random);
  ranks.direction = std::move(distances.direction);
  ranks.distance = randomised_rank(distances.squares, weights, random.uniform());
  return ranks;
}

}  // namespace nrec
