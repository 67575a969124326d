#include "inference/pareto_smoothing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace nrec {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kLeastTail = 5;  // weights above the cutoff that a fit needs
constexpr double kPriorScale = 3.0;    // of the grid over b = k / sigma [Zhang2009]
constexpr double kPriorWeight = 10.0;  // observations that the prior k = 1/2 is worth [Vehtari2024]
constexpr double kPriorShape = 0.5;
constexpr double kGoodShape = 0.7;  // [Vehtari2024]
const double kSmallestLog = std::log(std::numeric_limits<double>::min());

struct ParetoFit {
  double k, sigma;
};

/// Mean of log(1 - b x): minus the shape that belongs to b.
double mean_log(std::span<const double> excess, double b) {
  double sum = 0.0;
  for (const double x : excess) sum += std::log1p(-b * x);
  return sum / static_cast<double>(excess.size());
}

/// Fit to sorted excesses > 0 by averaging b over its profile likelihood on a grid.
ParetoFit fit_pareto(std::span<const double> excess) {
  const double n = static_cast<double>(excess.size());
  const auto grid = static_cast<std::size_t>(30.0 + std::floor(std::sqrt(n)));
  const double quartile = excess[static_cast<std::size_t>(n / 4.0 + 0.5) - 1];
  std::vector<double> b(grid), log_likelihood(grid);
  for (std::size_t i = 0; i < grid; ++i) {
    const double step = 1.0 - std::sqrt(static_cast<double>(grid) / (static_cast<double>(i) + 0.5));
    b[i] = step / (kPriorScale * quartile) + 1.0 / excess.back();
    const double k = mean_log(excess, b[i]);
    log_likelihood[i] = n * (std::log(-(b[i] / k)) - k - 1.0);
  }
  double total = 0.0, b_mean = 0.0;
  const double top = *std::max_element(log_likelihood.begin(), log_likelihood.end());
  double all = 0.0;
  for (const double value : log_likelihood) all += std::exp(value - top);
  for (std::size_t i = 0; i < grid; ++i) {
    const double weight = std::exp(log_likelihood[i] - top) / all;
    if (weight < 10.0 * std::numeric_limits<double>::epsilon()) continue;
    total += weight;
    b_mean += weight * b[i];
  }
  b_mean /= total;
  const double k = mean_log(excess, b_mean);
  return {(n * k + kPriorWeight * kPriorShape) / (n + kPriorWeight), -k / b_mean};
}

double pareto_quantile(double probability, const ParetoFit& fit) {
  const double log_tail = std::log1p(-probability);
  if (std::fabs(fit.k) < std::numeric_limits<double>::epsilon()) return -log_tail * fit.sigma;
  return std::expm1(-fit.k * log_tail) / fit.k * fit.sigma;
}

/// The weight that the tail starts above, relative to the largest.
double log_cutoff(std::span<const double> log_weights, double largest) {
  const double s = static_cast<double>(log_weights.size());
  const auto tail = static_cast<std::size_t>(std::ceil(std::min(s / 5.0, 3.0 * std::sqrt(s))));
  std::vector<double> top(std::min(tail + 1, log_weights.size()));
  std::partial_sort_copy(log_weights.begin(), log_weights.end(), top.begin(), top.end(), std::greater<>());
  return std::max(top.back() - largest, kSmallestLog);
}

/// One weight of the tail, relative to the largest.
struct TailWeight {
  std::size_t row;
  double log_weight;
};

/// Smooths the tail, which is sorted by weight, in place; returns k.
double smooth_tail(std::span<TailWeight> tail, double cutoff) {
  const double cutoff_weight = std::exp(cutoff);
  std::vector<double> excess;
  for (const TailWeight& weight : tail) excess.push_back(std::exp(weight.log_weight) - cutoff_weight);
  const ParetoFit fit = fit_pareto(excess);
  if (!std::isfinite(fit.k)) return kInfinity;
  const double n = static_cast<double>(tail.size());
  for (std::size_t j = 0; j < tail.size(); ++j) {
    const double quantile = pareto_quantile((static_cast<double>(j) + 0.5) / n, fit);
    tail[j].log_weight = std::min(0.0, std::log(quantile + cutoff_weight));
  }
  return fit.k;
}

/// Log of the sum of weights, and their effective sample size.
struct Sums {
  double log_sum, ess;
};

/// `for_each(use)` calls use(row, log weight) for every row.
template <class ForEach>
Sums sums_of(const ForEach& for_each, double largest) {
  double sum = 0.0, square = 0.0;
  for_each([&](std::size_t, double log_weight) {
    const double weight = std::exp(log_weight - largest);
    sum += weight;
    square += weight * weight;
  });
  return {largest + std::log(sum), sum * sum / square};
}

}  // namespace

double k_hat_threshold(std::size_t num_weights) {
  return std::min(1.0 - 1.0 / std::log10(static_cast<double>(num_weights)), kGoodShape);
}

double WeightQuality::threshold() const { return k_hat_threshold(num_weights); }

ParetoSmoothing smooth_weights(std::span<const double> log_weights) {
  ParetoSmoothing result;
  result.num_weights = log_weights.size();
  const double largest = *std::max_element(log_weights.begin(), log_weights.end());
  if (largest == -kInfinity) {
    result.log_sum = -kInfinity;
    result.k_hat = kInfinity;
    return result;
  }
  const double cutoff = log_cutoff(log_weights, largest);
  std::vector<TailWeight> tail;
  for (std::size_t i = 0; i < log_weights.size(); ++i) {
    if (log_weights[i] - largest > cutoff) tail.push_back({i, log_weights[i] - largest});
  }
  std::ranges::stable_sort(tail, {}, &TailWeight::log_weight);
  result.k_hat = cutoff == 0.0 ? -kInfinity : kInfinity;
  if (tail.size() >= kLeastTail) result.k_hat = smooth_tail(tail, cutoff);
  std::ranges::sort(tail, {}, &TailWeight::row);
  for (const TailWeight& weight : tail) {
    result.rows.push_back(weight.row);
    result.log_weight.push_back(weight.log_weight + largest);
  }
  const Sums sums = sums_of([&](const auto& use) { for_each_smoothed(log_weights, result, use); }, largest);
  result.log_sum = sums.log_sum;
  result.ess = sums.ess;
  return result;
}

WeightQuality judge_weights(std::span<const double> log_weights) {
  const ParetoSmoothing smoothing = smooth_weights(log_weights);
  WeightQuality quality{.num_weights = log_weights.size(), .log_sum = -kInfinity, .k_hat = smoothing.k_hat};
  if (smoothing.ess == 0) return quality;
  const double largest = *std::max_element(log_weights.begin(), log_weights.end());
  const auto raw = [&](const auto& use) {
    for (std::size_t i = 0; i < log_weights.size(); ++i) use(i, log_weights[i]);
  };
  const Sums sums = sums_of(raw, largest);
  quality.log_sum = sums.log_sum;
  quality.ess = sums.ess;
  return quality;
}

}  // namespace nrec
