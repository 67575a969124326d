#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nrec/core/stop.h"

namespace nrec {

/// How a program ended.
struct ProgramEnd {
  bool started = false;    // false: there is no such program on PATH
  bool timed_out = false;  // it was ended by the time limit or the stop request
  int exit_code = 0;       // 128 + signal after a signal
  std::string error_text;  // the first line that it wrote to standard error
};

/// Runs a program of PATH in a folder, without input, its output thrown away, and waits for its end.
///
/// Errors   IoError: no process or temporary file can be made
ProgramEnd run_program(const std::vector<std::string>& words, const std::filesystem::path& folder,
                       double time_limit, const StopRequest* stop = nullptr);

}  // namespace nrec
