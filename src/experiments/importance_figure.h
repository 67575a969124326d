#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "experiments/findings.h"
#include "nrec/commands/infer.h"

namespace nrec {

/// The importance-sampling diagnostic of NRE-C and NRE-B, of as many seeds as are done.
struct ImportanceFigure {
  CommandStatus status = CommandStatus::done;
  std::string message;
  std::optional<Findings> findings;  // of the networks that are done; nothing when none is
};

/// Trains what the folder `importance` does not hold yet, and looks at all.
///
/// Errors   UsageError: lists; those of run_importance_diagnostic()
ImportanceFigure importance_figure(const ExperimentOptions& options, const std::filesystem::path& folder,
                                   const RunContext& run);

}  // namespace nrec
