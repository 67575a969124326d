#pragma once

#include <string>

#include "nrec/commands/infer.h"

namespace nrec {

/// Which estimator and which observation, and how to draw.
struct SampleCommandOptions {
  std::string model;  // an estimator file, or the folder of a run
  ObservationOptions observation;
  SamplingOptions sampling;
  CheckOptions check;
};

/// Estimator and observation -> posterior draws: draws.npz, draws.csv and record.json in the output folder.
///
/// With `resume` draws that were cut off go on, and finished observations of a batch are kept. The simulations are not at hand, so the check has no held-out rows and cannot vouch for coverage.
/// Errors   IoError, ShapeError, DomainError, ConfigError: no model, no observation
CommandResult sample_command(const SampleCommandOptions& options, const OutputOptions& output,
                             const RunContext& run);

}  // namespace nrec
