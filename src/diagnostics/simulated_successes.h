#pragma once

#include <cstdint>
#include <span>

#include "nrec/core/run_context.h"
#include "nrec/simulation/simulator.h"

namespace nrec {

/// The rows of x that succeeded, in their order. Shapes   x [n, M], status [n]; returns [<= n, M]
Matrix<double> successful_rows(Matrix<double> x, std::span<const RowStatus> status);

/// Data simulated at each row of theta, without the rows that failed. Noise is that of rows first_row, first_row + 1 ..
/// Shapes   theta [n, D]; returns [<= n, M]
Matrix<double> simulated_successes(const Simulator& simulator, MatrixView<const double> theta,
                                   std::uint64_t first_row, const RunContext& run);

}  // namespace nrec
