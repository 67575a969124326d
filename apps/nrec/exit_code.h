#pragma once

#include <exception>
#include <string>

#include "nrec/commands/infer.h"

namespace nrec::app {

/// What the program tells its caller. docs/howto/infer.md explains them to users.
enum ExitCode : int {
  kDone = 0,
  kFailure = 1,  // internal or numerical
  kUsage = 2,
  kWrongInput = 3,    // unreadable or wrong
  kChecksFailed = 4,  // with --strict
  kBudgetSpent = 5,   // with a partial result
  kSimulationFailures = 6,
  kSignalBase = 128,  // + signal number: stopped after a checkpoint
};

/// Code of an exception that ended a command.
ExitCode exit_code_of(const std::exception& error);
/// Code of a result; `signal_number` is the one that asked to stop.
int exit_code_of(const CommandResult& result, bool strict, int signal_number);

}  // namespace nrec::app
