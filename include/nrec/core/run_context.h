#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "nrec/core/log_sink.h"
#include "nrec/core/stop.h"
#include "nrec/core/thread_pool.h"

namespace nrec {

/// What every long computation is given besides its data: who draws, who works, who listens, when to stop.
struct RunContext {
  ThreadPool& pool;
  std::uint64_t seed = 1;
  std::string isa = "auto";  // instruction set of the kernels; see kernels/dispatch.h
  LogSink& log = silent_sink();
  const StopRequest* stop = nullptr;                            // may be null
  double time_limit = std::numeric_limits<double>::infinity();  // seconds from the start of the call

  bool stop_requested() const { return stop && stop->requested(); }
};

}  // namespace nrec
