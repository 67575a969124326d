#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "nrec/core/stop.h"
#include "simulation/external/child_process.h"
#include "simulation/external/row_answer.h"
#include "simulation/external/scratch_folder.h"
#include "simulation/external/simulator_setup.h"

namespace nrec::simulation {

// No wait is longer, so that a stop request is obeyed at once.
inline constexpr double kLongestWait = 0.1;
// Seconds between SIGTERM and SIGKILL: for a program that is too late, and when a stop is requested.
inline constexpr double kGrace = 1.0;
inline constexpr double kStopGrace = 0.5;
// How long a program may go on after it closed its stdout, or after its stdin was closed.
inline constexpr double kMostSecondsOfLeaving = 10.0;

// Where a runner's programs run: their supervisor and their scratch folder.
class ProgramHost {
 public:
  explicit ProgramHost(std::shared_ptr<const SimulatorSetup> setup);

  const SimulatorSetup& setup() const { return *setup_; }
  // An empty folder for the next program.
  const std::filesystem::path& fresh_scratch() { return scratch_.fresh(); }
  void clear_scratch() { scratch_.clear(); }
  // Errors   IoError: no process or descriptor left
  std::unique_ptr<ChildProcess> start(const LaunchPlan& plan, ChildProcess::Input input);
  // Called when a program could not be started: pauses when another attempt may succeed.
  // Errors   IoError: it cannot be started at all
  void after_failed_start(const ChildProcess& child, const StopRequest& stop);
  void after_good_start() { failed_starts_ = 0; }

  // Called several times a second while something is waited for.
  std::function<void()> on_wait = [] {};

 private:
  std::shared_ptr<const SimulatorSetup> setup_;
  std::unique_ptr<Supervisor> supervisor_;
  ScratchFolder scratch_;
  int failed_starts_ = 0;
};

// The time limit of a row: the one given, or one that follows from the rows so far.
class RowTimeLimit {
 public:
  explicit RowTimeLimit(double given) : given_(given) {}
  double seconds() const;
  // A row was done in this time.
  void note(double seconds) { slowest_ = seconds > slowest_ ? seconds : slowest_; }

 private:
  double given_;
  double slowest_ = -1.0;
};

// How often a row has been tried, and whether it is tried again.
class Attempts {
 public:
  // Counts an attempt that ended with `result`; an interruption does not count among the `retries`.
  bool try_again(RowResult& result, bool is_interruption, std::int64_t retries);

 private:
  std::uint32_t made_ = 0;
  std::uint32_t interruptions_ = 0;
};

}  // namespace nrec::simulation
