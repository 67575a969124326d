#include "diagnostics/simulated_successes.h"

#include <algorithm>

namespace nrec {

Matrix<double> simulated_successes(const Simulator& simulator, MatrixView<const double> theta,
                                   std::uint64_t first_row, const RunContext& run) {
  Matrix<double> x(theta.rows, simulator.dim_x());
  std::vector<RowStatus> status(theta.rows);
  simulate_rows(simulator, run.seed, first_row, theta, x, status, run.pool);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    if (status[i] != RowStatus::ok) continue;
    std::copy(x.row(i).begin(), x.row(i).end(), x.row(kept++).begin());
  }
  x.resize_rows(kept);
  return x;
}

}  // namespace nrec
