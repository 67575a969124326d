#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "nrec/core/stop.h"
#include "nrec/simulation/simulation_set.h"

namespace nrec {

/// One row to simulate.
struct RowTask {
  std::uint64_t row = 0;          // its number in the campaign
  std::uint32_t seed = 0;         // of its noise: row_seed(campaign seed, row)
  std::span<const double> theta;  // [D]; lives as long as the call that it is given to
};

/// What came of one row. x is empty unless the status is ok or non_finite.
struct RowResult {
  std::uint64_t row = 0;
  RowStatus status = RowStatus::ok;
  std::vector<double> x;  // [M]
  std::string reason;     // empty when ok: "signal 11 (SIGSEGV)", "exit code 255", "3 numbers, 4 expected"
  std::string messages;   // tail of what the simulator said on stderr; empty when ok
  double seconds = 0.0;   // of the last attempt
  std::uint32_t attempts = 1;
};

/// Seed of the noise of a row: a pure function of (seed, row) in 0 .. 2^31 - 1, so that it fits every language's
/// integers.
std::uint32_t row_seed(std::uint64_t seed, std::uint64_t row);

/// "x[3] = nan": the first number that is not finite, for reasons. "" when all are.
std::string non_finite_reason(std::span<const double> x);

/// One worker of a campaign: runs rows one after the other, in whatever way, and survives what they do.
/// An object belongs to one thread; several run side by side.
class RowRunner {
 public:
  virtual ~RowRunner() = default;

  /// Runs `tasks` and calls `done` once for each as soon as its result is sure, from the calling thread; mostly in
  /// order. When a stop is requested it ends what is running and returns soon: rows that were not reported have not
  /// been run. A call may cost a start of the user's program: hand over many rows at once.
  ///
  /// Errors   ConfigError, IoError: the simulator cannot be run at all (it is gone, no scratch space, no processes)
  virtual void run(std::span<const RowTask> tasks, const std::function<void(RowResult&&)>& done,
                   const StopRequest& stop) = 0;
};

}  // namespace nrec
