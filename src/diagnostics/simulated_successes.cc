#include "diagnostics/simulated_successes.h"

#include <algorithm>
#include <utility>

namespace nrec {

Matrix<double> successful_rows(Matrix<double> x, std::span<const RowStatus> status) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    if (status[i] == RowStatus::ok) std::ranges::copy(x.row(i), x.row(kept++).begin());
  }
  x.resize_rows(kept);
  return x;
}

Matrix<double> simulated_successes(const Simulator& simulator, MatrixView<const double> theta,
                                   std::uint64_t first_row, const RunContext& run) {
  Matrix<double> x(theta.rows, simulator.dim_x());
  std::vector<RowStatus> status(theta.rows);
  simulate_rows(simulator, run.seed, first_row, theta, x, status, run.pool);
  return successful_rows(std::move(x), status);
}

}  // namespace nrec
