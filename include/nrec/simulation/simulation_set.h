#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// The status that a number in a file stands for; nothing for a number that stands for none.
std::optional<RowStatus> row_status_of(double number);

/// What is done with failed rows before training. docs/methods/failures.md derives what each of them learns.
enum class FailureRule {
  stop,   // refuse them: the user decides
  model,  // set their theta apart; training learns P(ok | theta) from it and the posterior is right
  drop,   // leave them out and count them; the posterior is off by the factor 1 / P(ok | theta)
};
/// "stop", "model", "drop". Errors: ConfigError with the known words.
FailureRule failure_rule(std::string_view name);
std::string_view failure_rule_name(FailureRule rule);

/// Pairs (theta, x) with what is known about them; what training reads.
struct SimulationSet {
  Matrix<double> theta;                      // [N, D]
  Matrix<double> x;                          // [N, M]
  std::vector<RowStatus> status;             // [N]; empty = all ok
  std::vector<std::string> parameter_names;  // [D]; may be empty when a file does not name them
  std::string source;                        // for humans and the record: a path or "task two_moons, seed 1"
  // What without_failures() leaves behind; all empty or 0 when no row failed.
  Matrix<double> failed_theta;             // [F, D] rule model: parameters of the failed rows
  std::size_t num_dropped = 0;             // rule drop: rows removed on the user's word
  std::vector<std::size_t> status_counts;  // [kNumRowStatuses] rows by RowStatus before the rule was applied

  std::size_t num_rows() const { return theta.rows(); }
  std::size_t dim_theta() const { return theta.cols(); }
  std::size_t dim_x() const { return x.cols(); }
  /// Failed rows that without_failures() met.
  std::size_t num_failed() const { return failed_theta.rows() + num_dropped; }
};

/// Checks a set before it is used: equal row counts, at least one row and one column of each, finite theta.
/// Sets status to non_finite for rows of x with nan or infinity.
///
/// Errors   ShapeError, DomainError with the first offending row and column
void check_simulations(SimulationSet& simulations);

/// Applies the user's decision about failed rows, so that theta and x hold successes only: refuses them with an
/// explanation (stop), moves their theta to failed_theta (model), or counts them in num_dropped (drop). A set without
/// failed rows comes back as it is.
///
/// Errors   DomainError: failed rows and the rule is stop, or no row is left
SimulationSet without_failures(SimulationSet simulations, FailureRule rule);

/// How many rows failed of how many, and in which ways: "2 of 30 simulations failed (1 ended with an error, 1 with nan
/// or infinity in x)". For sets that without_failures() has been applied to; "" when none failed.
std::string failure_summary(const SimulationSet& simulations);

}  // namespace nrec
