#include "simulation/row_workers.h"

#include <algorithm>
#include <utility>

#include "nrec/core/array.h"
#include "nrec/core/error.h"
#include "nrec/core/stop.h"

namespace nrec {

namespace {
constexpr double kSecondsPerChunk =
    0.2;  // of rows that a worker takes at once: long against a lock, short against a stop
constexpr std::size_t kMostRowsPerChunk = 4096;
}  // namespace

RowWorkers::RowWorkers(const Options& options, const ThetaOfRow& theta_of,
                       const std::function<std::unique_ptr<RowRunner>()>& make_runner, MissingRows& rows,
                       ResultQueue& results)
    : options_(options), theta_of_(theta_of), rows_(rows), results_(results) {
  for (int i = 0; i < options.count; ++i) threads_.emplace_back([this, &make_runner] { work(make_runner); });
}

void RowWorkers::end() {
  stop_.request(1);
  results_.close();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void RowWorkers::work(const std::function<std::unique_ptr<RowRunner>()>& make_runner) {
  const std::size_t least = std::max<std::size_t>(1, options_.rows_per_call);
  try {
    const std::unique_ptr<RowRunner> runner = make_runner();
    std::size_t chunk = least;
    while (!stop_.requested()) {
      const std::vector<std::uint64_t> rows = rows_.take(chunk, static_cast<std::size_t>(options_.count));
      if (rows.empty()) break;
      const Stopwatch watch;
      run_rows(*runner, rows);
      const double row_seconds = watch.seconds() / static_cast<double>(rows.size());
      const auto in_time = static_cast<std::size_t>(1.0 + kSecondsPerChunk / std::max(row_seconds, 1e-9));
      chunk = std::max(least, std::min({2 * rows.size(), kMostRowsPerChunk, in_time}));
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
    stop_.request(1);
  }
  results_.worker_ended();
}

void RowWorkers::run_rows(RowRunner& runner, const std::vector<std::uint64_t>& rows) {
  Matrix<double> theta(rows.size(), options_.dim_theta);
  std::vector<RowTask> tasks(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    theta_of_(rows[i], theta.row(i));
    tasks[i] = {
        .row = rows[i], .seed = row_seed(options_.seed, rows[i]), .theta = std::as_const(theta).row(i)};
  }
  std::size_t next = 0;  // results come in the order of the tasks or not: look from the last one found
  runner.run(
      tasks,
      [&](RowResult&& result) {
        for (std::size_t tried = 0; tasks[next].row != result.row; ++tried, next = (next + 1) % tasks.size())
          require_internal(tried < tasks.size(), "a runner reports only rows that it was given");
        results_.push({{tasks[next].theta.begin(), tasks[next].theta.end()}, std::move(result)});
      },
      stop_);
}

}  // namespace nrec
