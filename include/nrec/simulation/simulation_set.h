#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nrec/core/array.h"

namespace nrec {

/// How a simulation ended. Failure is data, never an exception. The numbers stand in files: add at the end, never
/// renumber.
enum class RowStatus : std::uint8_t {
  ok = 0,
  non_finite = 1,   // nan or infinity in x
  failed = 2,       // an exception, an exit code or a signal
  timed_out = 3,    // ended by us after the time limit of a row
  wrong_shape = 4,  // not the numbers that were asked for: too few, too many, text, rubbish
  refused = 5,      // the simulator said that it does not simulate this theta
};

inline constexpr std::size_t kNumRowStatuses = 6;

/// "ok", "non-finite", "failed", "timed out", "wrong shape", "refused".
std::string_view row_status_name(RowStatus status);

/// Pairs (theta, x) with what is known about them; what training reads.
struct SimulationSet {
  Matrix<double> theta;                      // [N, D]
  Matrix<double> x;                          // [N, M]
  std::vector<RowStatus> status;             // [N]; empty = all ok
  std::vector<std::string> parameter_names;  // [D]; may be empty when a file does not name them
  std::string source;                        // for humans and the record: a path or "task two_moons, seed 1"
  std::size_t num_dropped = 0;               // failed rows removed on the user's word

  std::size_t num_rows() const { return theta.rows(); }
  std::size_t dim_theta() const { return theta.cols(); }
  std::size_t dim_x() const { return x.cols(); }
};

/// Checks a set before it is used: equal row counts, at least one row and one column of each, finite theta.
/// Sets status to non_finite for rows of x with nan or infinity.
///
/// Errors   ShapeError, DomainError with the first offending row and column
void check_simulations(SimulationSet& simulations);

/// Applies the user's decision about failed rows: refuses them (DomainError that explains that dropping them biases
/// the posterior) or, with `drop_failed`, removes them and counts them in num_dropped.
/// Errors   DomainError: failed rows without drop_failed, or none left
SimulationSet without_failures(SimulationSet simulations, bool drop_failed);

}  // namespace nrec
