#include "nrec/inference/summarise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/sorted_quantile.h"

namespace nrec {

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
    row.ess = static_cast<double>(n);  // of independent draws
    const RecordValue* worth = draws.statistics.find("effective_draws");
    if (worth && std::get_if<double>(worth)) row.ess = std::get<double>(*worth);  // of draws with copies
    const RecordValue* bulk = draws.statistics.find("ess_bulk");
    const auto* values = bulk ? std::get_if<std::vector<double>>(bulk) : nullptr;
    if (values && d < values->size()) row.ess = (*values)[d];  // of chains
    if (n > 1 && column.front() == column.back())
      row.ess = std::numeric_limits<double>::quiet_NaN();  // a fixed parameter
    table.push_back(row);
  }
  return table;
}

}  // namespace nrec
