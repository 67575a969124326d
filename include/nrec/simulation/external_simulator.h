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
  /// Words as in a shell, but no shell runs: quotes and backslashes work, nothing else does. Placeholders of
  /// protocol run: {name} {theta} {seed} {row} {theta_file} {theta_file:npy} {x_file} {x_file:npy}.
  std::string command;
  std::string protocol;  // "run" | "lines" | "npy"; empty: run when the command has placeholders, else lines
  /// Protocol lines: what is written per row; placeholders {theta} {seed} {row} {name}.
  std::string line = "{theta}";
  std::string
      library;  // a shared library with the C interface of nrec/simulator_interface.h; excludes command
  /// Working folder of the program, and where relative names in command and library start; empty: the current one.
  std::filesystem::path folder;
  double row_time_limit = 0.0;  // seconds; 0: from the pre-flight runs
  double memory_limit = 0.0;    // MB of data per process; 0: none
  std::int64_t retries = 0;     // of a failed row, with the same seed
  std::int64_t rows_per_process =
      0;  // persistent programs are restarted after so many; 0: when their memory grows
  std::int64_t batch_rows = 256;  // protocol npy: most rows of a request
  /// Where rows get their folders; empty: the system's folder for temporary files.
  std::filesystem::path scratch;
  /// The nrec executable, or another one whose words "worker --library FILE" call run_library_worker(FILE); empty:
  /// this process's executable.
  std::string worker_program;
};

/// What the pre-flight runs found.
struct PreflightReport {
  std::vector<std::size_t> x_shape;  // of one row; empty: a stop or the time limit came before it was known
  bool is_reproducible = true;       // the same (theta, seed) gave the same x
  bool seed_has_effect = true;       // another seed gave another x
  double startup_seconds =
      0.0;  // from the start of a persistent program to its first answer, less a row's time
  double seconds_per_row = 0.0;
  double row_time_limit = 0.0;  // the one that will be used
  /// How many rows a call of RowRunner::run should at least get, so that what a call costs (for some protocols a
  /// start of the program) is below a twentieth.
  std::size_t rows_per_call = 1;
  std::vector<std::string> warnings;  // sentences with a next step
};

/// A user's simulator outside this process: a program run once per row, a program that answers row after row, or a
/// shared library inside worker processes.
///
/// Runners keep small processes between this one and the user's programs, which end the programs with all their
/// descendants when their row is over and when this process is gone, even by kill -9.
class ExternalSimulator {
 public:
  /// Errors   ConfigError: option values, unknown placeholders (with the nearest known one), a parameter that the
  ///          program is not told; IoError: the program, the library or the folder cannot be found
  ExternalSimulator(ExternalSimulatorOptions options, std::vector<std::string> parameter_names);
  ~ExternalSimulator();
  ExternalSimulator(ExternalSimulator&&) noexcept;
  ExternalSimulator& operator=(ExternalSimulator&&) noexcept;

  /// One line for people: the command or the library.
  std::string name() const;
  /// Content hash of the program, of every file named in the command, and of how it is called.
  /// Errors   IoError: one of them cannot be read
  std::string hash() const;
  /// Runs a few rows: does it answer, with what shape, is it reproducible, how long does it take. Rows may fail; when
  /// none of them succeeds the simulator is refused. Afterwards runners know the shape and the time limit.
  /// Words come through run.log when it takes long; run.stop ends it.
  ///
  /// Shapes   theta [n, D] draws of the prior, n >= 8, used in order until enough succeeded
  /// Errors   ConfigError: no row succeeded, or the program breaks its protocol (answers out of order or too many, kept
  ///          in a buffer, ends too early): what it said, and what to do; IoError: it cannot be executed, no scratch
  ///          space; ShapeError: theta has fewer than 8 rows or another number of columns than there are parameters
  /// Cost     three runs of the simulator when all is well; at most 600 s each where no time limit is given
  PreflightReport preflight(MatrixView<const double> theta, std::uint64_t seed, const RunContext& run);
  /// Tells the shape instead of preflight(): a campaign that goes on knows it. Without a row_time_limit, runners then
  /// take 600 s for the first row and 20 times the slowest so far, at least 60 s, for others.
  /// startup_seconds and seconds_per_row as a pre-flight found them, or < 0: without them a program gets a minute for its first answer.
  void set_x_shape(std::vector<std::size_t> shape, double startup_seconds = -1.0,
                   double seconds_per_row = -1.0);
  /// A worker; it may outlive this object. Errors   InternalError: the shape is not known yet
  std::unique_ptr<RowRunner> make_runner();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nrec
