#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "nrec/core/run_context.h"
#include "nrec/simulation/row_runner.h"

namespace nrec {

/// How a user's program is called. docs/howto/simulators.md explains every key to users.
struct ExternalSimulatorOptions {
  std::string
      command;  // words as in a shell, but no shell runs: quotes and backslashes work, nothing else does
  std::string protocol;  // "run" | "lines" | "npy"; empty: run when the command has placeholders, else lines
  std::string line =
      "{theta}";  // protocol lines: what is written per row; placeholders {theta} {seed} {row} {name}
  std::string
      library;  // a shared library with the C interface of nrec/simulator_interface.h; excludes command
  std::filesystem::path folder;  // working folder of relative names in command and library
  double row_time_limit = 0.0;   // seconds; 0: from the pre-flight runs
  double memory_limit = 0.0;     // MB per worker; 0: none
  std::int64_t retries = 0;      // of a failed row, with the same seed
  std::int64_t rows_per_process =
      0;  // persistent programs are restarted after so many; 0: when their memory grows
  std::int64_t batch_rows = 256;  // protocol npy: rows per frame
  std::filesystem::path
      scratch;  // where rows get their folders; empty: the system's folder for temporary files
};

/// What the pre-flight runs found.
struct PreflightReport {
  std::vector<std::size_t> x_shape;  // of one row
  bool is_reproducible = true;       // the same (theta, seed) gave the same x
  bool seed_has_effect = true;       // another seed gave another x
  double seconds_per_row = 0.0;
  double row_time_limit = 0.0;        // the one that will be used
  std::vector<std::string> warnings;  // sentences with a next step
};

/// A user's simulator outside this process: a program run once per row, a program that answers row after row, or a
/// shared library inside worker processes.
class ExternalSimulator {
 public:
  /// Errors   ConfigError: option values, unknown placeholders (with the nearest known one); IoError: the program or the
  ///          library cannot be found
  ExternalSimulator(ExternalSimulatorOptions options, std::vector<std::string> parameter_names);
  ~ExternalSimulator();

  /// One line for people: the command or the library.
  std::string name() const;
  /// Content hash of the program, of every file named in the command, and of how it is called.
  std::string hash() const;
  /// Runs a few rows: does it answer, with what shape, is it reproducible, how long does it take. Rows may fail; when
  /// none of them succeeds the simulator is refused. Afterwards runners know the shape and the time limit.
  ///
  /// Shapes   theta [n, D] draws of the prior, n >= 8, used in order until enough succeeded
  /// Errors   ConfigError: cannot be executed, missing library, no row succeeded: what it said, and what to do
  PreflightReport preflight(MatrixView<const double> theta, std::uint64_t seed, const RunContext& run);
  /// Tells the shape instead of preflight(): a campaign that goes on knows it.
  void set_x_shape(std::vector<std::size_t> shape);
  /// A worker. Errors   InternalError: the shape is not known yet
  std::unique_ptr<RowRunner> make_runner();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nrec
