#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace nrec {

/// A fixed set of threads that work on numbered tasks.
///
/// Which thread runs which task is left to chance; results must therefore depend on the task number alone
/// (sum into one buffer per task or lane, then add the buffers in order). Every thread flushes denormals
/// to zero while it runs tasks. Where there are no more threads than cores, those that wait look for work for a tenth of a
/// millisecond before they sleep, and sleep at once where that was in vain for some times.
class ThreadPool {
 public:
  /// `num_threads` >= 1, or 0 for one per available core (no more than the control group of a container has time for).
  /// Errors   DomainError: above 1024 or below 0; std::system_error: the system starts no more threads
  explicit ThreadPool(int num_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Threads that work, the caller's included.
  int num_threads() const;

  /// Calls body(task, worker) once for every task in 0 .. num_tasks - 1 and returns when all are done.
  /// worker is in 0 .. num_threads - 1. The first exception of a body is rethrown here after all threads stopped.
  /// Not reentrant: a body must not call run() of the same pool. No allocation.
  template <class Body>
  void run(std::size_t num_tasks, Body&& body) {
    run_erased(
        num_tasks,
        [](void* context, std::size_t task, int worker) {
          (*static_cast<std::remove_reference_t<Body>*>(context))(task, worker);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* context, std::size_t task, int worker);
  void run_erased(std::size_t num_tasks, Call call, void* context);

  struct State;
  std::unique_ptr<State> state_;
};

/// While it lives, this thread's float operations treat denormals as zero (they cost about 100 times more).
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned saved_ = 0;
};

}  // namespace nrec
