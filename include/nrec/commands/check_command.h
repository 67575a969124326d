#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nrec/commands/infer.h"

namespace nrec {

/// Which estimator, which simulations it has not seen, and which observation.
struct CheckCommandOptions {
  std::string model;                     // an estimator file, or the folder of a run
  std::vector<std::string> simulations;  // files of held-out pairs
  std::string task;                      // the built-in task that makes them, and data at posterior draws
  std::string problem;                   // a problem file whose simulator makes data at posterior draws
  std::int64_t num_simulations = 1000;   // of the task
  std::int64_t num_predicted = 0;        // 0: by who simulates
  std::int64_t max_rows = 1000;          // 0: all
  std::int64_t num_prior_draws = 4096;
  ObservationOptions observation;  // may be empty
};

/// Flags of the command itself; [observation] has its own.
void describe(OptionTable& table, CheckCommandOptions& options);

/// Estimator and held-out simulations -> every check with a verdict, in record.json of the output folder.
///
/// Simulations of a task are made with a seed of their own, never that of the training. Failed rows are left out where the estimator
/// knows of failures, and refused otherwise. Rows that seem to be those of the training are used, with a warning, and the verdict is
/// then "cannot tell" at best.
///
/// With a problem file, its simulator is run at posterior draws of the observation; these rows go to predictive.npz.
///
/// Errors   IoError: a file; ShapeError, DomainError, ConfigError: simulations, task, problem or observation that do not fit the estimator, no
///          model, neither simulations nor a task; UnsupportedError: several rows of an observation
CommandResult check_command(const CheckCommandOptions& options, const OutputOptions& output,
                            const RunContext& run);

/// The numbers of a full check for people: parameters with shift and width, coverage at some levels, information. `record` is that of
/// the command; "" where there are no ranks.
std::string check_table(const Record& record);

}  // namespace nrec
