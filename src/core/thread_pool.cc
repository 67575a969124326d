#include "nrec/core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "core/available_cores.h"
#include "nrec/core/error.h"

namespace nrec {

FlushDenormals::FlushDenormals() {
#if defined(__SSE2__)
  saved_ = _mm_getcsr();
  _mm_setcsr(saved_ | 0x8040u);  // flush results to zero, treat denormal operands as zero
#endif
}

FlushDenormals::~FlushDenormals() {
#if defined(__SSE2__)
  _mm_setcsr(saved_);
#endif
}

namespace {

/// How long one thread looks for work before it sleeps. To be woken takes some 50 microseconds, and the parts of a small training
/// step not much longer; but where other programs want the cores, what is waited for does not run while one looks. So threads
/// that have looked in vain some times sleep at once for a growing number of times. They do not yield between looks: the
/// scheduler would give a whole slice of milliseconds to any program that is busy, however nice.
class Patience {
 public:
  /// Whether `ready` came true while it was looked for.
  template <class Ready>
  bool comes_soon(const Ready& ready) {
    if (num_skipped_ > 0) {
      --num_skipped_;
      return ready();
    }
    const auto start = std::chrono::steady_clock::now();
    do {
      for (int look = 0; look < kLooksPerTurn; ++look) {
        if (ready()) {
          num_vain_ = 0;
          return true;
        }
#if defined(__SSE2__)
        _mm_pause();
#endif
      }
    } while (std::chrono::steady_clock::now() - start < kLongest);
    num_vain_ = std::min(num_vain_ + 1, kMostVain);
    if (num_vain_ > kVainBeforeSkips) num_skipped_ = 1 << (num_vain_ - kVainBeforeSkips);
    return false;
  }

 private:
  static constexpr auto kLongest = std::chrono::microseconds(100);
  static constexpr int kLooksPerTurn = 16, kVainBeforeSkips = 3, kMostVain = 10;
  int num_vain_ = 0;     // times without success since the last one
  int num_skipped_ = 0;  // times that are still to be skipped
};

}  // namespace

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable work_ready;
  std::condition_variable work_done;
  int num_threads = 1;
  bool may_spin = false;  // no more threads than cores
  // These change under the mutex where somebody may sleep until they do.
  std::atomic<std::uint64_t> generation{0};  // which call to run() the workers have seen
  std::atomic<int> busy{0};                  // workers still in this generation
  std::atomic<bool> quit{false};

  std::atomic<std::size_t> next_task{0};
  std::size_t num_tasks = 0;
  Call call = nullptr;
  void* context = nullptr;
  std::exception_ptr failure;
  Patience callers_patience;          // of the thread that calls run()
  std::vector<std::jthread> threads;  // the last: they are joined before anything else goes

  /// Also where a thread could not be started.
  ~State() {
    {
      const std::lock_guard lock(mutex);
      quit = true;
    }
    work_ready.notify_all();
  }

  void work(int worker) {
    const FlushDenormals flush;
    try {
      for (std::size_t task = next_task.fetch_add(1); task < num_tasks; task = next_task.fetch_add(1))
        call(context, task, worker);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next_task.store(num_tasks);
    }
  }

  template <class Ready>
  void wait(std::condition_variable& signal, Patience& patience, const Ready& ready) {
    if (may_spin && patience.comes_soon(ready)) return;
    std::unique_lock lock(mutex);
    signal.wait(lock, ready);
  }

  void loop(int worker) {
    std::uint64_t seen = 0;
    Patience patience;
    for (;;) {
      wait(work_ready, patience, [&] { return quit || generation != seen; });
      if (quit) return;
      seen = generation;
      work(worker);
      const std::lock_guard lock(mutex);
      if (--busy == 0) work_done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int num_threads) : state_(std::make_unique<State>()) {
  constexpr int kMostThreads = 1024;
  if (num_threads < 0 || num_threads > kMostThreads) {
    throw DomainError("threads = " + std::to_string(num_threads) + " is outside 0.." +
                      std::to_string(kMostThreads) + "; use 0 for one thread per core");
  }
  const int cores = available_cores();
  if (num_threads == 0) num_threads = cores;
  state_->num_threads = num_threads;
  state_->may_spin = num_threads <= cores;
  State* state = state_.get();
  for (int worker = 1; worker < num_threads; ++worker)
    state_->threads.emplace_back([state, worker] { state->loop(worker); });
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::num_threads() const { return state_->num_threads; }

void ThreadPool::run_erased(std::size_t num_tasks, Call call, void* context) {
  if (num_tasks == 0) return;
  State& state = *state_;
  const bool alone = state.num_threads == 1 || num_tasks == 1;
  {
    const std::lock_guard lock(state.mutex);
    require_internal(state.call == nullptr, "ThreadPool::run called from inside a task of the same pool");
    state.next_task.store(0);
    state.num_tasks = num_tasks;
    state.call = call;
    state.context = context;
    state.failure = nullptr;
    if (!alone) {
      state.busy = state.num_threads - 1;
      ++state.generation;
    }
  }
  if (!alone) state.work_ready.notify_all();
  state.work(0);
  state.wait(state.work_done, state.callers_patience, [&] { return state.busy == 0; });
  std::unique_lock lock(state.mutex);
  state.call = nullptr;
  const std::exception_ptr failure = std::exchange(state.failure, nullptr);
  lock.unlock();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace nrec
