#include "nrec/core/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "nrec/core/error.h"

namespace nrec {
namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.num_threads(), threads);
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::vector<std::atomic<int>> counts(101);
      pool.run(counts.size(), [&](std::size_t task, int worker) {
        EXPECT_LT(worker, threads);
        counts[task].fetch_add(1);
      });
      for (const auto& count : counts) ASSERT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPool, WakesWhoeverWaitsOrSleeps) {
  ThreadPool pool(2);
  for (int call = 0; call < 3000; ++call) {
    if (call % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the worker sleeps
    std::atomic<int> done{0};
    pool.run(2, [&](std::size_t task, int) {
      if (task == 1 && call % 100 == 50) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      done.fetch_add(1);
    });
    ASSERT_EQ(done.load(), 2);
  }
}

/// Threads that want every core as long as they live, at a lower priority.
class NicePrograms {
 public:
  NicePrograms() {
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
      threads_.emplace_back([](const std::stop_token& stop) {
        setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
        while (!stop.stop_requested()) {
        }
      });
  }

 private:
  std::vector<std::jthread> threads_;
};

/// Seconds of many calls of two tasks of some twenty microseconds.
double seconds_of_short_calls() {
  ThreadPool pool(2);
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto start = now();
  for (int call = 0; call < 500; ++call)
    pool.run(2, [&](std::size_t, int) {
      const auto end = now() + std::chrono::microseconds(20);
      while (now() < end) {
      }
    });
  return std::chrono::duration<double>(now() - start).count();
}

TEST(ThreadPool, IsNotHeldUpByNiceProgramsOnTheSameCores) {
  constexpr double kFew = 0.06;  // 0.01 of work, 0.022 to 0.03 measured; threads that yield take 0.1 to 2
  const NicePrograms others;
  double least = 1e9;  // of several: another program may hold up any of them
  for (int attempt = 0; attempt < 20 && least > kFew; ++attempt)
    least = std::min(least, seconds_of_short_calls());
  EXPECT_LT(least, kFew);
}

TEST(ThreadPool, RethrowsTheExceptionOfATaskAndGoesOn) {
  ThreadPool pool(3);
  EXPECT_THROW(pool.run(10,
                        [](std::size_t task, int) {
                          if (task == 5) throw DomainError("five");
                        }),
               DomainError);
  std::atomic<int> done{0};
  pool.run(10, [&](std::size_t, int) { done.fetch_add(1); });
  EXPECT_EQ(done.load(), 10);
}

TEST(ThreadPool, SaysSoWhereThreadsCannotBeStarted) {
  // In a process of its own, whose memory has no room for a thousand stacks.
  const auto start_too_many = [] {
    const rlimit room{std::size_t{600} << 20, std::size_t{600} << 20};
    if (setrlimit(RLIMIT_AS, &room) != 0) std::_Exit(3);
    try {
      ThreadPool pool(1000);
    } catch (const std::exception&) {
      std::_Exit(0);
    }
    std::_Exit(4);  // all were started: the limit was none
  };
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they reserve more than that
  EXPECT_EXIT(start_too_many(), ::testing::ExitedWithCode(0), "");
#else
  static_cast<void>(start_too_many);
#endif
}

TEST(ThreadPool, RefusesImpossibleThreadCounts) {
  EXPECT_THROW(ThreadPool(-1), DomainError);
  EXPECT_THROW(ThreadPool(5000), DomainError);
}

TEST(ThreadPool, FlushesDenormalsInsideTasksOnly) {
  ThreadPool pool(2);
  volatile float tiny = 1e-38f;
  std::atomic<int> flushed{0};
  pool.run(8, [&](std::size_t, int) {
    volatile float smaller = tiny * 0.01f;
    if (smaller == 0.0f) flushed.fetch_add(1);
  });
  EXPECT_EQ(flushed.load(), 8);
  volatile float outside = tiny * 0.01f;
  EXPECT_GT(outside, 0.0f);
}

}  // namespace
}  // namespace nrec
