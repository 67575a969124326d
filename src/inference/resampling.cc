#include "inference/resampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace nrec {

namespace {

constexpr int kBisections = 50;

/// Expected square of the number of copies when `expected` copies are expected: floor of that or one more.
double mean_square_of_copies(double expected) {
  const double least = std::floor(expected);
  const double more = expected - least;
  return (1.0 - more) * least * least + more * (least + 1.0) * (least + 1.0);
}

}  // namespace

Resampling::Resampling(std::span<const double> log_weights, const WeightQuality& quality,
                       std::size_t most_draws)
    : log_weights_(log_weights), log_sum_(quality.log_sum), most_draws_(most_draws) {
  const double least = log_sum_ - std::log(static_cast<double>(most_draws));
  for (const double log_weight : log_weights) {
    if (log_weight > least) heavy_.push_back(std::exp(log_weight - log_sum_));
  }
}

double Resampling::effective_draws(std::size_t num_draws, double growth) const {
  const double n = static_cast<double>(num_draws);
  double squares = n;  // every row once at most: its square is its number
  for (const double weight : heavy_) {
    const double expected = n * weight / growth;
    if (expected > 1.0) squares += growth * (mean_square_of_copies(expected) - expected);
  }
  return n * n / squares;
}

std::size_t Resampling::supported_draws() const {
  const auto is_supported = [&](std::size_t n) {
    return effective_draws(n) >= kLeastWorth * static_cast<double>(n);
  };
  if (is_supported(most_draws_)) return most_draws_;
  std::size_t yes = 0, no = most_draws_;
  while (no - yes > 1) {
    const std::size_t middle = yes + (no - yes) / 2;
    (is_supported(middle) ? yes : no) = middle;
  }
  return yes;
}

double Resampling::growth_needed(double most) const {
  const double wanted = kLeastWorth * static_cast<double>(most_draws_);
  if (effective_draws(most_draws_) >= wanted) return 1.0;
  if (effective_draws(most_draws_, most) < wanted) return std::numeric_limits<double>::infinity();
  double no = 1.0, yes = most;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = std::sqrt(no * yes);
    (effective_draws(most_draws_, middle) >= wanted ? yes : no) = middle;
  }
  return yes;
}

std::vector<std::size_t> Resampling::draw(std::size_t num_draws, double uniform) const {
  std::vector<double> weights(log_weights_.size());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = std::exp(log_weights_[i] - log_sum_);
  return systematic_rows(weights, num_draws, uniform);
}

std::vector<std::size_t> systematic_rows(std::span<const double> weights, std::size_t num_draws,
                                         double uniform) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::size_t> rows;
  rows.reserve(num_draws);
  double sum = 0.0;
  std::size_t last = 0;
  for (std::size_t row = 0; row < weights.size(); ++row) {
    if (!(weights[row] > 0)) continue;
    sum += weights[row];
    last = row;
    while (rows.size() < num_draws &&
           (static_cast<double>(rows.size()) + uniform) * total < static_cast<double>(num_draws) * sum)
      rows.push_back(row);
  }
  rows.resize(num_draws, last);  // a sum that rounding left below the total
  return rows;
}

Copies count_copies(std::span<const std::size_t> rows) {
  Copies copies;
  double squares = 0.0;
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t end = first;
    while (end < rows.size() && rows[end] == rows[first]) ++end;
    squares += static_cast<double>((end - first) * (end - first));
    ++copies.distinct;
    first = end;
  }
  const double n = static_cast<double>(rows.size());
  if (!rows.empty()) copies.effective_draws = n * n / squares;
  return copies;
}

}  // namespace nrec
