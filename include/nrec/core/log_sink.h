#pragma once

#include <string>
#include <string_view>

namespace nrec {

/// What a long piece of work says about itself, at most a few times a second.
struct ProgressUpdate {
  std::string_view stage;    // "training", "sampling", ...
  double done = 0.0;         // units finished
  double total = 0.0;        // units in all; 0 = unknown
  std::string_view unit;     // "epoch", "draw", "simulation"
  double seconds_left = -1;  // negative = unknown
  std::string detail;        // e.g. "loss 0.413 +- 0.004, 12.3 steps/s"
};

/// Where the library's words go: it never prints by itself. The default swallows everything.
/// Implementations must be callable from one thread at a time (the library calls from the thread that called it).
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void info(std::string_view /*text*/) {}
  /// Something the user should know; said once, with numbers and a next step.
  virtual void warning(std::string_view /*text*/) {}
  virtual void progress(const ProgressUpdate& /*update*/) {}
};

/// A sink that swallows everything.
LogSink& silent_sink();

}  // namespace nrec
