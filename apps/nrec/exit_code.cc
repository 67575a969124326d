#include "exit_code.h"

#include "nrec/core/error.h"

namespace nrec::app {

ExitCode exit_code_of(const std::exception& error) {
  if (dynamic_cast<const UsageError*>(&error)) return kUsage;
  if (dynamic_cast<const SimulationFailureError*>(&error)) return kSimulationFailures;
  if (dynamic_cast<const InternalError*>(&error)) return kFailure;
  if (dynamic_cast<const Error*>(&error)) return kWrongInput;
  return kFailure;
}

int exit_code_of(const CommandResult& result, bool strict, int signal_number) {
  switch (result.status) {
    case CommandStatus::stopped:
      return kSignalBase + signal_number;
    case CommandStatus::budget_spent:
      return kBudgetSpent;
    case CommandStatus::simulations_failed:
      return kSimulationFailures;
    case CommandStatus::failed:
      return kFailure;
    case CommandStatus::done:
      break;
  }
  return strict && result.check && result.check->verdict == Verdict::not_trusted ? kChecksFailed : kDone;
}

}  // namespace nrec::app
