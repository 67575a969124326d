#pragma once

#include <atomic>
#include <chrono>

namespace nrec {

/// Asks long work to stop at its next safe point. Set from a signal handler or another thread.
class StopRequest {
 public:
  void request(int signal_number) noexcept { signal_.store(signal_number, std::memory_order_relaxed); }
  bool requested() const noexcept { return signal_.load(std::memory_order_relaxed) != 0; }
  /// The number given to request(), 0 if none.
  int signal_number() const noexcept { return signal_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> signal_{0};
};

/// Seconds since construction, by the steady clock.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace nrec
