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

std::vector<ScheduledCell> cells(std::size_t count) {
  std::vector<ScheduledCell> list;
  for (std::size_t i = 0; i < count; ++i)
    list.push_back({.text = "cell " + std::to_string(i), .seed = i + 1});
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
  std::mutex mutex;
  std::vector<std::uint64_t> seeds;
  std::vector<int> threads;
  const auto work = [&](std::size_t cell, const RunContext& run) {
    EXPECT_EQ(run.seed, cell + 1);
    const std::lock_guard lock(mutex);
    seeds.push_back(run.seed);
    threads.push_back(run.pool.num_threads());
    return true;
  };
  EXPECT_EQ(run_cells(cells(20), 2, 0, work, {.pool = pool, .log = listener}), ScheduleStatus::done);
  std::sort(seeds.begin(), seeds.end());
  ASSERT_EQ(seeds.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(seeds[i], i + 1);
  for (const int count : threads) EXPECT_TRUE(count == 2 || count == 3) << count;
  EXPECT_EQ(listener.lines.size(), 20u);
}

TEST(RunCells, ThrowsWhatACellThrowsAndStopsTheOthers) {
  ThreadPool pool(2);
  Listener listener;
  std::atomic<int> begun = 0;
  const auto work = [&](std::size_t cell, const RunContext& run) {
    ++begun;
    if (cell == 1) throw ShapeError("too few rows");
    return wait_for_stop(run);
  };
  try {
    run_cells(cells(10), 2, 0, work, {.pool = pool, .log = listener});
    FAIL() << "nothing was thrown";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "too few rows");
  }
  EXPECT_EQ(begun, 2) << "no cell begins after an error";
  ASSERT_EQ(listener.lines.size(), 1u);
  EXPECT_EQ(listener.lines[0], "cell 1: ended with an error; the other cells are stopped");
}

TEST(RunCells, SaysAllNewsHoweverFastTheCellsAre) {
  ThreadPool pool(3);
  for (int repeat = 0; repeat < 200; ++repeat) {
    Listener listener;
    const auto work = [](std::size_t, const RunContext&) { return true; };
    EXPECT_EQ(run_cells(cells(3), 3, 0, work, {.pool = pool, .log = listener}), ScheduleStatus::done);
    ASSERT_EQ(listener.lines.size(), 3u) << repeat;
  }
}

TEST(RunCells, EndsAtAStopAndAtTheTimeLimit) {
  ThreadPool pool(2);
  const auto work = [](std::size_t, const RunContext& run) { return wait_for_stop(run); };
  StopRequest stop;
  stop.request(15);
  EXPECT_EQ(run_cells(cells(3), 0, 0, work, {.pool = pool, .stop = &stop}), ScheduleStatus::stopped);
  EXPECT_EQ(run_cells(cells(3), 0, 0, work, {.pool = pool, .time_limit = 0.05}),
            ScheduleStatus::budget_spent);
  EXPECT_EQ(run_cells({}, 0, 0, work, {.pool = pool}), ScheduleStatus::done);
}

}  // namespace
}  // namespace nrec
