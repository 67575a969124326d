#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "nrec/core/array.h"
#include "nrec/core/run_context.h"
#include "nrec/simulation/row_runner.h"
#include "nrec/simulation/simulation_set.h"

namespace nrec {

/// How rows are run.
struct RowsAtOptions {
  std::uint64_t seed = 1;         // of the rows' noise
  int workers = 1;                // rows that run side by side
  std::size_t rows_per_call = 1;  // fewest rows that a worker takes at once, where so many are left
};

/// What came out, and how the first row that failed did: "row 3: exit code 2: what it said", or "".
struct RowsAt {
  SimulationSet set;
  std::string first_failure;
};

/// Runs a simulator at given parameters: row i of theta as row i of a campaign with this seed would be run there. Nothing is stored.
/// A stop request or the time limit of `run` ends it soon; rows that were not run by then are left out.
///
/// Shapes   theta [n, D] in; [n, M] out, in the order of theta, failed rows as nan with their status
/// Errors   those of the runners
RowsAt simulate_at(MatrixView<const double> theta, std::size_t dim_x,
                   const std::function<std::unique_ptr<RowRunner>()>& make_runner,
                   const RowsAtOptions& options, const RunContext& run);

}  // namespace nrec
