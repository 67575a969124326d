#include "commands/benchmark_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "nrec/core/error.h"

namespace nrec {
namespace {

std::vector<BenchmarkCell> cells(std::size_t count) {
  std::vector<BenchmarkCell> list;
  for (std::size_t i = 0; i < count; ++i) list.push_back({"two_moons", "nre-c", 1000, i + 1});
  return list;
}

/// Remembers what was said; fails when two threads speak.
class Listener final : public LogSink {
 public:
  void info(std::string_view text) override {
    EXPECT_EQ(std::this_thread::get_id(), owner_);
    lines.emplace_back(text);
  }
  void progress(const ProgressUpdate& update) override {
    EXPECT_EQ(std::this_thread::get_id(), owner_);
    EXPECT_LE(update.done, update.total);
  }
  std::vector<std::string> lines;

 private:
  std::thread::id owner_ = std::this_thread::get_id();
};

/// Ends when a stop is asked for: what a cell in training does.
bool wait_for_stop(const RunContext& run) {
  while (!run.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return false;
}

TEST(RunCells, RunsEveryCellOnceWithItsSeedAndItsShareOfThreads) {
  ThreadPool pool(5);
  Listener listener;
  BenchmarkOptions options;
  options.parallel = 2;
  std::mutex mutex;
  std::vector<std::uint64_t> seeds;
  std::vector<int> threads;
  const auto work = [&](const BenchmarkCell& cell, const RunContext& run) {
    EXPECT_EQ(run.seed, cell.seed);
    const std::lock_guard lock(mutex);
    seeds.push_back(cell.seed);
    threads.push_back(run.pool.num_threads());
    return true;
  };
  EXPECT_EQ(run_cells(cells(20), options, 0, work, {.pool = pool, .log = listener}), ScheduleStatus::done);
  std::sort(seeds.begin(), seeds.end());
  ASSERT_EQ(seeds.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(seeds[i], i + 1);
  for (const int count : threads) EXPECT_TRUE(count == 2 || count == 3) << count;
  EXPECT_EQ(listener.lines.size(), 20u);
}

TEST(RunCells, ThrowsWhatACellThrowsAndStopsTheOthers) {
  ThreadPool pool(2);
  Listener listener;
  BenchmarkOptions options;
  options.parallel = 2;
  std::atomic<int> begun = 0;
  const auto work = [&](const BenchmarkCell& cell, const RunContext& run) {
    ++begun;
    if (cell.seed == 2) throw ShapeError("too few rows");
    return wait_for_stop(run);
  };
  try {
    run_cells(cells(10), options, 0, work, {.pool = pool, .log = listener});
    FAIL() << "nothing was thrown";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "too few rows");
  }
  EXPECT_EQ(begun, 2) << "no cell begins after an error";
  ASSERT_EQ(listener.lines.size(), 1u);
  EXPECT_EQ(listener.lines[0],
            "two_moons nre-c 1000 seed 2: ended with an error; the other cells are stopped");
}

TEST(RunCells, EndsAtAStopAndAtTheTimeLimit) {
  ThreadPool pool(2);
  const auto work = [](const BenchmarkCell&, const RunContext& run) { return wait_for_stop(run); };
  StopRequest stop;
  stop.request(15);
  EXPECT_EQ(run_cells(cells(3), {}, 0, work, {.pool = pool, .stop = &stop}), ScheduleStatus::stopped);
  EXPECT_EQ(run_cells(cells(3), {}, 0, work, {.pool = pool, .time_limit = 0.05}),
            ScheduleStatus::budget_spent);
  EXPECT_EQ(run_cells({}, {}, 0, work, {.pool = pool}), ScheduleStatus::done);
}

}  // namespace
}  // namespace nrec
