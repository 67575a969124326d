#pragma once

#include <filesystem>
#include <optional>

#include "experiments/findings.h"

namespace nrec {

/// The full check of every network that was measured, on simulations of its task that it has not seen, against its quality: C2ST
/// below 0.6 is a good network, above 0.8 a bad one. Its records are kept in the folder `verdicts` and used again. Nothing
/// when a stop was requested or the time was over.
///
/// Errors   those of full_check()
std::optional<Findings> verdict_table(const ExperimentPlan& plan, const CellResults& results,
                                      const std::filesystem::path& folder, const RunContext& run);

}  // namespace nrec
