#pragma once

#include <filesystem>
#include <optional>

#include "experiments/findings.h"

namespace nrec {

/// Verdicts on the networks that are checked.
struct VerdictTable {
  std::optional<Findings> findings;  // nothing when none is checked
  bool is_complete = true;           // false: a stop was requested or the time was over before all were
};

/// The full check of every network that was measured, on simulations of its task that it has not seen, against its quality: C2ST
/// below 0.6 is a good network, above 0.8 a bad one. Its records are kept in the folder `verdicts` and used again.
///
/// Errors   those of full_check()
VerdictTable verdict_table(const ExperimentPlan& plan, const CellResults& results,
                           const std::filesystem::path& folder, const RunContext& run);

}  // namespace nrec
