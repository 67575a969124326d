#include "nrec/diagnostics/ratio_information.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "nrec/core/error.h"

namespace nrec {

LogMeanExp log_mean_exp(std::span<const double> values) {
  if (values.empty()) throw ShapeError("log_mean_exp: there are no values; give at least one");
  const double top = *std::max_element(values.begin(), values.end());
  if (!std::isfinite(top)) return {top, std::numeric_limits<double>::infinity()};
  const double n = static_cast<double>(values.size());
  double sum = 0.0, square = 0.0;
  for (const double value : values) {
    const double weight = std::exp(value - top);
    sum += weight;
    square += weight * weight;
  }
  return {top + std::log(sum / n), std::max(0.0, square / (sum * sum) - 1.0 / n)};
}

namespace {

struct Moments {
  double mean = 0.0, sd = 0.0, se = 0.0;
};

Moments moments(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  Moments result;
  for (const double value : values) result.mean += value / n;
  double square = 0.0;
  for (const double value : values) square += (value - result.mean) * (value - result.mean);
  result.sd = std::sqrt(square / (n - 1.0));
  result.se = result.sd / std::sqrt(n);
  return result;
}

}  // namespace

RatioInformation ratio_information(std::span<const double> log_ratio, std::span<const LogMeanExp> z) {
  if (log_ratio.size() != z.size() || z.size() < 2) {
    throw ShapeError("ratio_information: there are " + std::to_string(log_ratio.size()) + " log ratios and " +
                     std::to_string(z.size()) + " means; there must be as many, at least two");
  }
  std::vector<double> log_z, ratio, i0, i1;
  RatioInformation result;
  result.num_rows = z.size();
  for (std::size_t n = 0; n < z.size(); ++n) {
    log_z.push_back(z[n].value);
    ratio.push_back(std::exp(z[n].value));
    i0.push_back(log_ratio[n] - z[n].value);
    i1.push_back(log_ratio[n] - std::exp(z[n].value) + 1.0);
    result.mean_log_ratio += log_ratio[n] / static_cast<double>(z.size());
    // log of a mean is low by half its relative variance.
    result.i0_bias += 0.5 * z[n].relative_variance / static_cast<double>(z.size());
  }
  const Moments of_log_z = moments(log_z), of_ratio = moments(ratio), of_i0 = moments(i0),
                of_i1 = moments(i1);
  result.mean_log_z = of_log_z.mean;
  result.mean_log_z_se = of_log_z.se;
  result.sd_log_z = of_log_z.sd;
  result.mean_ratio = of_ratio.mean;
  result.mean_ratio_se = of_ratio.se;
  result.i0 = of_i0.mean;
  result.i0_se = of_i0.se;
  result.i1 = of_i1.mean;
  result.i1_se = of_i1.se;
  return result;
}

}  // namespace nrec
