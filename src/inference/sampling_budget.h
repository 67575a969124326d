#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "nrec/core/stop.h"
#include "nrec/inference/sample.h"

namespace nrec {

/// What a sampler that moves chains has spent, and whether it may go on. Both arguments must outlive it.
class SamplingBudget {
 public:
  SamplingBudget(const SamplingOptions& options, const RunContext& run) : options_(options), run_(run) {}

  /// Why the run must end before `count` more evaluations; complete if it need not.
  SamplingStatus reason_to_end(std::size_t count) const {
    if (run_.stop_requested()) return SamplingStatus::stopped;
    const bool is_spent = static_cast<std::int64_t>(count) > left() ||
                          watch_.seconds() > std::min(options_.max_seconds, run_.time_limit);
    return is_spent ? SamplingStatus::budget_spent : SamplingStatus::complete;
  }
  void spend(std::size_t count) { evaluations_ += static_cast<std::int64_t>(count); }
  std::int64_t evaluations() const { return evaluations_; }
  std::int64_t left() const { return options_.max_evaluations - evaluations_; }
  double seconds() const { return watch_.seconds(); }

 private:
  const SamplingOptions& options_;
  const RunContext& run_;
  Stopwatch watch_;
  std::int64_t evaluations_ = 0;
};

}  // namespace nrec
