#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "nrec/commands/output_folder.h"
#include "nrec/commands/problem.h"
#include "nrec/core/error.h"
#include "nrec/core/record.h"
#include "nrec/core/run_context.h"
#include "nrec/diagnostics/quick_check.h"
#include "nrec/inference/posterior_draws.h"
#include "nrec/inference/summarise.h"

namespace nrec {

/// How a command ended when it did not throw.
enum class CommandStatus {
  done,
  budget_spent,        // partial result
  stopped,             // on request; --resume goes on
  simulations_failed,  // too many of them: the simulator is broken
  failed,              // numerical failure: no usable result
};
/// "done", "budget spent", "stopped", "too many failures", "failed".
std::string_view command_status_name(CommandStatus status);

/// What a command hands back. It has written its files by then.
struct CommandResult {
  CommandStatus status = CommandStatus::done;
  std::string message;                     // one sentence: why it ended
  std::filesystem::path folder;            // where the files are
  Record record;                           // all that record.json holds
  std::vector<MarginalSummary> marginals;  // of a single posterior; empty where there are no draws
  std::vector<PosteriorDraws> batch;       // rows = "batch": one for every observation
  std::optional<CheckReport> check;        // empty where nothing was checked
};

/// Simulations that nrec ran itself failed, and failures = "stop" (failed rows of files are a DomainError).
class SimulationFailureError : public DomainError {
 public:
  using DomainError::DomainError;
};

/// Simulations and an observation -> estimator, posterior draws and a verdict: the whole way in one run.
///
/// Writes estimator.safetensors, draws.npz, draws.csv, record.json, config.toml and checkpoint.safetensors
/// into the output folder. With `resume` training goes on from the checkpoint, draws that belong to the
/// same estimator, observation and options are taken over, and those that were cut off go on. Of a time limit
/// training gets at most nine tenths, so that there is a posterior to look at.
///
/// Errors   those of read_problem's parts, train() and sample(); SimulationFailureError
CommandResult infer(const Problem& problem, const OutputOptions& output, const RunContext& run);

/// Simulations -> estimator: the first half of infer().
CommandResult train_command(const Problem& problem, const OutputOptions& output, const RunContext& run);

}  // namespace nrec
