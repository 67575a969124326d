#include "nrec/inference/summarise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/sorted_quantile.h"

namespace nrec {

namespace {

/// What the sampler says about column d, or `otherwise`.
double of_chains(const PosteriorDraws& draws, const char* name, std::size_t d, double otherwise) {
  const RecordValue* value = draws.statistics.find(name);
  const auto* numbers = value ? std::get_if<std::vector<double>>(value) : nullptr;
  return numbers && d < numbers->size() ? (*numbers)[d] : otherwise;
}

/// Of independent draws: sqrt((m4 - m2^2) / (4 m2 n)), as for chains.
double independent_mcse_sd(const std::vector<double>& values, double mean) {
  const double n = static_cast<double>(values.size());
  if (n < 2) return std::numeric_limits<double>::quiet_NaN();
  double m2 = 0.0, m4 = 0.0;
  for (const double value : values) {
    const double square = (value - mean) * (value - mean);
    m2 += square / n;
    m4 += square * square / n;
  }
  return std::sqrt((m4 - m2 * m2) / (4.0 * m2 * n));
}

}  // namespace

std::vector<MarginalSummary> summarise(const PosteriorDraws& draws) {
  std::vector<MarginalSummary> table;
  const std::size_t n = draws.size();
  if (n == 0) return table;
  std::vector<double> column(n);
  for (std::size_t d = 0; d < draws.theta.cols(); ++d) {
    for (std::size_t i = 0; i < n; ++i) column[i] = draws.theta(i, d);
    std::sort(column.begin(), column.end());
    MarginalSummary row;
    row.name = d < draws.names.size() ? draws.names[d] : "theta[" + std::to_string(d) + "]";
    double sum = 0.0;
    for (const double value : column) sum += value - column[0];
    row.mean = column[0] + sum / static_cast<double>(n);
    double square = 0.0;
    for (const double value : column) square += (value - row.mean) * (value - row.mean);
    row.sd =
        n > 1 ? std::sqrt(square / static_cast<double>(n - 1)) : std::numeric_limits<double>::quiet_NaN();
    row.quantile05 = sorted_quantile(column, 0.05);
    row.quantile50 = sorted_quantile(column, 0.50);
    row.quantile95 = sorted_quantile(column, 0.95);
    const RecordValue* worth = draws.statistics.find("effective_draws");
    const double* copies = worth ? std::get_if<double>(worth) : nullptr;  // of draws with copies
    const double independent = copies ? *copies : static_cast<double>(n);
    row.ess = of_chains(draws, "ess_bulk", d, independent);
    row.mcse_mean = of_chains(draws, "mcse_mean", d, row.sd / std::sqrt(independent));
    row.mcse_sd =
        of_chains(draws, "mcse_sd", d,
                  independent_mcse_sd(column, row.mean) * std::sqrt(static_cast<double>(n) / independent));
    if (n > 1 && column.front() == column.back())  // a fixed parameter
      row.ess = row.mcse_mean = row.mcse_sd = std::numeric_limits<double>::quiet_NaN();
    table.push_back(row);
  }
  return table;
}

}  // namespace nrec
