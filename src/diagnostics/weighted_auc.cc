#include "nrec/diagnostics/weighted_auc.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>

#include "nrec/core/error.h"
#include "nrec/core/options.h"

namespace nrec {

namespace {

constexpr std::size_t kCurvePoints = 101;

double checked_sum(std::span<const double> weights, const char* name) {
  double sum = 0.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0.0 && std::isfinite(weights[i])))
      throw DomainError("weighted_auc: " + std::string(name) + "[" + std::to_string(i) +
                        "] = " + number_text(weights[i]) + " must be finite and not negative");
    sum += weights[i];
  }
  if (!(sum > 0.0)) throw DomainError("weighted_auc: " + std::string(name) + " are all 0");
  return sum;
}

void check(std::span<const double> ones, std::span<const double> zeros, std::span<const double> one_weights,
           std::span<const double> zero_weights) {
  const std::size_t n = ones.size();
  if (n < 2 || zeros.size() != n || one_weights.size() != n || zero_weights.size() != n)
    throw ShapeError("weighted_auc: " + std::to_string(n) + " ones, " + std::to_string(zeros.size()) +
                     " zeros; scores and weights must be as many, at least two");
  for (const std::span<const double> scores : {ones, zeros}) {
    if (std::any_of(scores.begin(), scores.end(), [](double s) { return std::isnan(s); }))
      throw DomainError("weighted_auc: a score is nan");
  }
}

/// Weight of `others` below each of `scores`, ties counting one half, as a share of all.
std::vector<double> share_below(std::span<const double> scores, std::span<const double> others,
                                std::span<const double> weights, double total) {
  std::vector<std::size_t> order(others.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return others[a] < others[b]; });
  std::vector<double> sorted, below(1, 0.0);
  for (const std::size_t k : order) {
    sorted.push_back(others[k]);
    below.push_back(below.back() + weights[k]);
  }
  std::vector<double> shares;
  for (const double score : scores) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), score);
    const double low = below[static_cast<std::size_t>(first - sorted.begin())];
    const double high = below[static_cast<std::size_t>(last - sorted.begin())];
    shares.push_back(0.5 * (low + high) / total);
  }
  return shares;
}

/// Weight of ones above the thresholds that let through 0, 1 %, 2 % .. of the weight of zeros.
std::vector<double> curve(std::span<const double> ones, std::span<const double> zeros,
                          std::span<const double> one_weights, std::span<const double> zero_weights,
                          double one_total, double zero_total) {
  const std::vector<double> false_positive = share_below(ones, zeros, zero_weights, zero_total);
  std::vector<double> rates(kCurvePoints, 0.0);
  for (std::size_t i = 0; i < ones.size(); ++i) {
    const double needed = (1.0 - false_positive[i]) * static_cast<double>(kCurvePoints - 1);
    const auto first = static_cast<std::size_t>(std::max(0.0, std::ceil(needed)));
    if (first < kCurvePoints) rates[first] += one_weights[i] / one_total;
  }
  std::partial_sum(rates.begin(), rates.end(), rates.begin());
  return rates;
}

}  // namespace

WeightedAuc weighted_auc(std::span<const double> ones, std::span<const double> zeros,
                         std::span<const double> one_weights, std::span<const double> zero_weights) {
  check(ones, zeros, one_weights, zero_weights);
  const double one_total = checked_sum(one_weights, "one_weights");
  const double zero_total = checked_sum(zero_weights, "zero_weights");
  const std::vector<double> won = share_below(ones, zeros, zero_weights, zero_total);
  const std::vector<double> lost = share_below(zeros, ones, one_weights, one_total);
  WeightedAuc result;
  result.auc = 0.0;
  for (std::size_t i = 0; i < won.size(); ++i) result.auc += one_weights[i] * won[i] / one_total;
  double variance = 0.0;
  for (std::size_t i = 0; i < won.size(); ++i) {
    // 1 - lost: share of ones above this zero.
    const double influence = one_weights[i] / one_total * (won[i] - result.auc) +
                             zero_weights[i] / zero_total * (1.0 - lost[i] - result.auc);
    variance += influence * influence;
  }
  result.standard_error = std::sqrt(variance);
  const double z = (result.auc - 0.5) / result.standard_error;
  result.p_value =
      std::isfinite(z) ? 0.5 * std::erfc(z / std::numbers::sqrt2) : (result.auc > 0.5 ? 0.0 : 1.0);
  result.true_positive = curve(ones, zeros, one_weights, zero_weights, one_total, zero_total);
  return result;
}

}  // namespace nrec
