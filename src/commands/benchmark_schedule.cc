#include "commands/benchmark_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "core/available_memory.h"
#include "nrec/core/stop.h"

namespace nrec {

namespace {

constexpr std::chrono::milliseconds kBetweenLooks(200);  // at signals and the clock
constexpr double kMemoryShare = 0.8;                     // of what is available
constexpr double kOverdueShare = 0.25;

std::size_t cells_side_by_side(std::span<const ScheduledCell> cells, std::int64_t parallel,
                               const RunContext& run) {
  if (parallel > 0) return std::min<std::size_t>(cells.size(), static_cast<std::size_t>(parallel));
  std::uint64_t largest = 1;
  for (const ScheduledCell& cell : cells) largest = std::max(largest, cell.memory);
  std::size_t count = std::min(cells.size(), static_cast<std::size_t>(run.pool.num_threads()));
  if (const std::uint64_t memory = available_memory()) {
    const auto fit =
        static_cast<std::size_t>(kMemoryShare * static_cast<double>(memory) / static_cast<double>(largest));
    if (fit < count) {
      count = std::max<std::size_t>(fit, 1);
      run.log.info(fmt::format(
          "{} cells side by side: one takes up to {} MB of the {} MB of memory that are available", count,
          largest >> 20, memory >> 20));
    }
  }
  return std::max<std::size_t>(count, 1);
}

/// The cells, the threads that work on them, and the one that watches.
class Schedule {
 public:
  Schedule(std::span<const ScheduledCell> cells, std::size_t done_before, std::size_t side_by_side,
           const CellWork& work, const RunContext& run)
      : cells_(cells), done_before_(done_before), side_by_side_(side_by_side), work_(work), run_(run) {}

  ScheduleStatus run() {
    std::vector<std::jthread> threads;
    running_ = side_by_side_;
    for (std::size_t i = 0; i < side_by_side_; ++i) threads.emplace_back([this, i] { work_off(i); });
    const ScheduleStatus status = watch();
    for (std::jthread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    return status;
  }

 private:
  /// A worker: cells until none is left, or a stop.
  void work_off(std::size_t worker) {
    const int all = run_.pool.num_threads();
    const int share = all / static_cast<int>(side_by_side_) +
                      (static_cast<int>(worker) < all % static_cast<int>(side_by_side_) ? 1 : 0);
    try {
      ThreadPool pool(std::max(share, 1));
      while (const ScheduledCell* cell = take()) work_on(*cell, pool);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stop_.request(1);
    }
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  const ScheduledCell* take() {
    const std::lock_guard lock(mutex_);
    return stop_.requested() || next_ == cells_.size() ? nullptr : &cells_[next_++];
  }

  void work_on(const ScheduledCell& cell, ThreadPool& pool) {
    const Stopwatch clock;
    {
      const std::lock_guard lock(mutex_);
      started_[&cell] = clock;
    }
    const RunContext context = {.pool = pool, .seed = cell.seed, .isa = run_.isa, .stop = &stop_};
    try {
      const bool is_done = work_(static_cast<std::size_t>(&cell - cells_.data()), context);
      const std::lock_guard lock(mutex_);
      started_.erase(&cell);
      if (!is_done) return;
      ++done_;
      cost_done_ += cell.cost;
      seconds_done_ += clock.seconds();
      news_.push_back(fmt::format("{}: done in {:.1f} s", cell.text, clock.seconds()));
      changed_.notify_all();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      news_.push_back(cell.text + ": ended with an error; the other cells are stopped");
      throw;
    }
  }

  /// The calling thread: it alone speaks, and it alone looks at signals and the clock.
  ScheduleStatus watch() {
    ScheduleStatus status = ScheduleStatus::done;
    std::unique_lock lock(mutex_);
    while (running_ > 0) {
      changed_.wait_for(lock, kBetweenLooks);
      if (status == ScheduleStatus::done && !stop_.requested()) {
        if (run_.stop_requested()) status = ScheduleStatus::stopped;
        if (clock_.seconds() > run_.time_limit) status = ScheduleStatus::budget_spent;
        if (status != ScheduleStatus::done) stop_.request(1);
      }
      say();
    }
    say();  // workers may have ended before the first look
    return done_ == cells_.size() ? ScheduleStatus::done : status;
  }

  void say() {
    for (const std::string& line : news_) run_.log.info(line);
    news_.clear();
    if (started_.empty() || running_ == 0) return;
    const auto longest = std::min_element(started_.begin(), started_.end(), [](const auto& a, const auto& b) {
      return a.second.seconds() > b.second.seconds();
    });
    run_.log.progress({.stage = "benchmark",
                       .done = static_cast<double>(done_before_ + done_),
                       .total = static_cast<double>(done_before_ + cells_.size()),
                       .unit = "cell",
                       .seconds_left = seconds_left(),
                       .detail = fmt::format("{} running, the longest {} for {:.0f} s", started_.size(),
                                             longest->first->text, longest->second.seconds())});
  }

  /// From what cells have taken so far; unknown before the first is done.
  double seconds_left() const {
    if (done_ == 0) return -1.0;
    const double per_cost = seconds_done_ / cost_done_;
    double seconds = 0.0;
    for (std::size_t i = next_; i < cells_.size(); ++i) seconds += per_cost * cells_[i].cost;
    // A cell that takes longer than expected will go on for a while.
    for (const auto& [cell, clock] : started_)
      seconds += std::max(kOverdueShare * clock.seconds(), per_cost * cell->cost - clock.seconds());
    return seconds / static_cast<double>(side_by_side_);
  }

  std::span<const ScheduledCell> cells_;
  const std::size_t done_before_;
  const std::size_t side_by_side_;
  const CellWork& work_;
  const RunContext& run_;
  Stopwatch clock_;
  StopRequest stop_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0, done_ = 0, running_ = 0;
  double cost_done_ = 0.0, seconds_done_ = 0.0;
  std::map<const ScheduledCell*, Stopwatch> started_;
  std::vector<std::string> news_;
  std::exception_ptr failure_;
};

}  // namespace

ScheduleStatus run_cells(std::span<const ScheduledCell> cells, std::int64_t parallel,
                         std::size_t cells_done_before, const CellWork& work, const RunContext& run) {
  if (cells.empty()) return ScheduleStatus::done;
  return Schedule(cells, cells_done_before, cells_side_by_side(cells, parallel, run), work, run).run();
}

}  // namespace nrec
