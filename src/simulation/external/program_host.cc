#include "simulation/external/program_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "nrec/core/error.h"
#include "simulation/external/program_file.h"

namespace nrec::simulation {
namespace {

// An interrupted row is repeated so many times, whatever `retries` is.
constexpr std::uint32_t kMostInterruptions = 5;
// A start that failed for want of something is repeated so many times; all pauses together last 6 s.
constexpr int kMostFailedStarts = 6;
constexpr double kFirstPause = 0.1;

// Time limits without a given one.
constexpr double kLimitOfFirstRow = 600.0;
constexpr double kLeastLimit = 60.0;
constexpr double kLimitPerSlowest = 20.0;

}  // namespace

ProgramHost::ProgramHost(std::shared_ptr<const SimulatorSetup> setup)
    : setup_(std::move(setup)), scratch_(setup_->scratch) {}

std::unique_ptr<ChildProcess> ProgramHost::start(const LaunchPlan& plan, ChildProcess::Input input) {
  if (!supervisor_ || supervisor_->is_lost()) {
    supervisor_.reset();
    supervisor_ = std::make_unique<Supervisor>();
  }
  return std::make_unique<ChildProcess>(*supervisor_, plan, input);
}

void ProgramHost::after_failed_start(const ChildProcess& child, const StopRequest& stop) {
  if (!is_passing_failure(child.start_stage(), child.start_error()) || failed_starts_ == kMostFailedStarts) {
    throw IoError("simulator: " + start_failure(setup_->program, child.start_stage(), child.start_error()));
  }
  const double pause = kFirstPause * static_cast<double>(1 << failed_starts_++);
  for (const Stopwatch waiting; waiting.seconds() < pause && !stop.requested();) {
    on_wait();
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(pause, kLongestWait)));
  }
}

double RowTimeLimit::seconds() const {
  if (given_ > 0.0) return given_;
  return slowest_ < 0.0 ? kLimitOfFirstRow : std::max(kLeastLimit, kLimitPerSlowest * slowest_);
}

bool Attempts::try_again(RowResult& result, bool is_interruption, std::int64_t retries) {
  result.attempts = ++made_;
  if (is_interruption) return ++interruptions_ <= kMostInterruptions;
  const bool may_change = result.status == RowStatus::failed || result.status == RowStatus::timed_out ||
                          result.status == RowStatus::wrong_shape;
  return may_change && static_cast<std::int64_t>(made_ - interruptions_) <= retries;
}

}  // namespace nrec::simulation
