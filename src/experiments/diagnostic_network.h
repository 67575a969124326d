#pragma once

#include <filesystem>
#include <optional>

#include "nrec/core/record.h"
#include "nrec/experiments/importance_diagnostic.h"
#include "nrec/simulation/simulation_set.h"

namespace nrec {

/// What two trainings must have in common for one of them to stand for the other: network, training, simulations, seed and
/// instruction set. All values are texts.
Record network_identity(const ImportanceDiagnosticOptions& options, const RunContext& run);

/// A network and how it came about; no estimator where training ended early or came to nothing.
struct DiagnosticNetwork {
  std::optional<RatioEstimator> estimator;
  DiagnosticTraining training;
  ExperimentStatus status = ExperimentStatus::done;
};

/// The network of these settings: from the folder when it is there, else trained, with a checkpoint there, and kept there.
///
/// Errors   as run_importance_diagnostic(), and those of train()
DiagnosticNetwork diagnostic_network(const ImportanceDiagnosticOptions& options,
                                     const SimulationSet& simulations, const RunContext& run,
                                     const std::filesystem::path& folder);

}  // namespace nrec
