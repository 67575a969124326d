#pragma once

#include <string>
#include <vector>

#include "experiments/experiment_cells.h"

namespace nrec {

/// The cells of a folder of nrec benchmark that are done, by name; only what identifies them is set.
///
/// Errors   IoError: no such folder, no cells in it, a record that cannot be read or lacks what identifies the cell
std::vector<ExperimentCell> benchmark_plan_cells(const std::string& folder);

/// Records and networks of these cells. The results point into `cells`.
/// Errors   IoError
CellResults benchmark_cells(const std::string& folder, const std::vector<ExperimentCell>& cells);

}  // namespace nrec
