#include "nrec/simulation/rows_at.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/row_workers.h"

namespace nrec {

namespace {

constexpr double kSecondsBetweenLooks = 0.1;

/// Rows that came in, by their numbers.
using FinishedRows = std::vector<std::optional<RowResult>>;

void take_results(ResultQueue& results, FinishedRows& rows) {
  for (SimulatedRow& row : results.take_all())
    rows[static_cast<std::size_t>(row.result.row)] = std::move(row.result);
}

std::string failure_text(const RowResult& row) {
  if (row.status == RowStatus::ok) return "";
  std::string text = "row " + std::to_string(row.row) + ": " +
                     (row.reason.empty() ? std::string(row_status_name(row.status)) : row.reason);
  std::string_view said = row.messages;
  while (!said.empty() && std::isspace(static_cast<unsigned char>(said.back()))) said.remove_suffix(1);
  said.remove_prefix(said.find_last_of('\n') + 1);  // the last line; npos + 1 is 0
  if (!said.empty()) text += ": " + std::string(said);
  return text;
}

RowsAt in_order(MatrixView<const double> theta, std::size_t dim_x, const FinishedRows& rows) {
  const auto count = static_cast<std::size_t>(
      std::ranges::count_if(rows, [](const std::optional<RowResult>& row) { return row.has_value(); }));
  RowsAt found;
  SimulationSet& set = found.set;
  set.theta = Matrix<double>(count, theta.cols);
  set.x = Matrix<double>(count, dim_x, std::vector<double>(count * dim_x, std::nan("")));
  std::size_t i = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!rows[row]) continue;
    std::ranges::copy(theta.row(row), set.theta.row(i).begin());
    if (!rows[row]->x.empty()) std::ranges::copy(rows[row]->x, set.x.row(i).begin());
    set.status.push_back(rows[row]->status);
    if (found.first_failure.empty()) found.first_failure = failure_text(*rows[row]);
    ++i;
  }
  return found;
}

}  // namespace

RowsAt simulate_at(MatrixView<const double> theta, std::size_t dim_x,
                   const std::function<std::unique_ptr<RowRunner>()>& make_runner,
                   const RowsAtOptions& options, const RunContext& run) {
  FinishedRows finished(theta.rows);
  if (theta.rows > 0) {
    const Stopwatch watch;
    MissingRows rows(theta.rows, {}, {});
    const int count =
        std::clamp(options.workers, 1, static_cast<int>(std::min<std::size_t>(theta.rows, 1'000'000)));
    ResultQueue results(count);
    const ThetaOfRow theta_of = [&](std::uint64_t row, std::span<double> values) {
      std::ranges::copy(theta.row(static_cast<std::size_t>(row)), values.begin());
    };
    RowWorkers workers({options.seed, theta.cols, count, options.rows_per_call}, theta_of, make_runner, rows,
                       results);
    while (results.wait(kSecondsBetweenLooks)) {
      take_results(results, finished);
      if (run.stop_requested() || watch.seconds() > run.time_limit) break;
    }
    workers.end();
    take_results(results, finished);
    workers.rethrow_error();
  }
  return in_order(theta, dim_x, finished);
}

}  // namespace nrec
