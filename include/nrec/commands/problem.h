#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "nrec/core/options.h"
#include "nrec/core/run_context.h"
#include "nrec/inference/sample.h"
#include "nrec/priors/prior.h"
#include "nrec/training/train.h"

namespace nrec {

/// Section [parameters]: the prior, by parameter name. One of `terms` and `from_samples` is filled, or none
/// when a task brings its own.
struct ParameterOptions {
  std::vector<PriorTerm> terms;
  std::filesystem::path from_samples;  // a file of thetas
  std::vector<std::string>
      names;  // of the columns of from_samples; empty: the file's own, or theta_1, theta_2, ...
};

/// Section [simulations]: where theta and x come from. One of `files`, `task`, `command` and `library` is given, or
/// `campaign` alone, whose rows are then used as they are.
struct SimulationOptions {
  std::vector<std::string> files;
  std::string task;
  std::string command;   // an external program; docs/howto/simulators.md
  std::string library;   // a shared library with the C interface
  std::string protocol;  // "run" | "lines" | "npy"; empty: by the command
  std::string line = "{theta}";
  std::string folder;        // working folder of command; empty: that of the problem file
  std::string campaign;      // folder of the stored rows; empty: campaign_folder()
  std::int64_t workers = 0;  // 0: as many as threads
  double row_time_limit = 0.0;
  double memory_limit = 0.0;
  std::int64_t retries = 0;
  std::int64_t rows_per_process = 0;
  std::int64_t batch_rows = 256;
  std::string scratch;
  double max_failure_fraction = 0.9;
  std::int64_t num_simulations = 10000;
  bool num_simulations_given = false;  // with files: only then is it a limit
  std::string failures = "stop";       // a FailureRule
  bool component_per_call = false;
};

/// Section [observation].
struct ObservationOptions {
  std::string file;
  std::int64_t row = -1;     // row of a table of observations, from 0; -1: the file holds one observation
  std::string rows = "one";  // what the rows of a table are: "one" | "iid" | "batch"
};

/// Section [check].
struct CheckOptions {
  std::string level = "quick";
  std::int64_t num_predicted = 0;  // 0: by who simulates
};

/// Section [run]: what a RunContext is made from.
struct RunOptions {
  std::uint64_t seed = 1;
  int threads = 0;                                              // 0: one per core
  double time_limit = std::numeric_limits<double>::infinity();  // seconds
  std::string isa = "auto";
  std::string precision = "auto";  // "f32" | "bf16": of the operands of hidden layers
};

/// Everything that a problem file says. File names are as the program can open them: read_problem() has put
/// the folder of the problem file in front of relative ones.
struct Problem {
  std::filesystem::path file;  // empty when everything came from flags
  ParameterOptions parameters;
  SimulationOptions simulations;
  ObservationOptions observation;
  NetworkOptions network;
  TrainingOptions training;
  SamplingOptions sampling;
  CheckOptions check;
  RunOptions run;
};

/// Sections of the problem file other than [parameters], which has the user's own keys. The table is bound to
/// the structs.
void describe(OptionTable& table, SimulationOptions& options);
void describe(OptionTable& table, ObservationOptions& options);
void describe(OptionTable& table, CheckOptions& options);
/// Its num_predicted, for commands that may simulate, and what is wrong with it: "" when nothing.
std::string broken_num_predicted(std::int64_t num_predicted);
void describe_num_predicted(OptionTable& table, std::string_view section, std::int64_t& num_predicted);
/// What [network] and [training] start from, a key of [training] that only read_problem() acts on: "default" | "published".
void describe_settings(OptionTable& table, std::string& settings);
void describe(OptionTable& table, RunOptions& options);
/// The same without the seed: for commands that have several.
void describe_without_seed(OptionTable& table, RunOptions& options);
/// All of them, in the order of the documentation.
void describe(OptionTable& table, Problem& problem);

/// A value that replaces the one of the file: a flag of the command line.
struct OptionOverride {
  std::string section, name;
  std::vector<std::string> values;  // as typed; several only for lists
  std::string where;                // starts messages: "--gamma"
};

/// Stores an override. Errors: UsageError.
void apply(const OptionOverride& flag, const OptionTable& table);

/// Reads a problem file (none if `path` is empty) and puts the overrides on top; [training] settings says what both stand on.
/// Relative file names in the problem file are relative to it; those of overrides to the current folder.
///
/// Errors   ConfigError: every broken rule of the file, one per line with file and line number, at most ten;
///          UsageError: the same for overrides; IoError: unreadable file
Problem read_problem(const std::filesystem::path& path, std::span<const OptionOverride> overrides = {});

/// Checks what single values cannot show: one source of simulations, a prior where one is needed.
/// Errors   ConfigError with every broken rule
void validate(const Problem& problem);
/// The same for a command that only simulates: it needs something to run.
/// Errors   ConfigError with every broken rule
void validate_simulator(const Problem& problem);

/// The prior of [parameters], or of the task.
/// Errors   as Prior::from_terms and Prior::from_samples; IoError
Prior problem_prior(const Problem& problem);

/// The text of a problem file with every effective value, defaults included; relative file names are
/// rewritten to start from `folder`, where the text is going to be.
std::string problem_text(const Problem& problem, const std::filesystem::path& folder);

}  // namespace nrec
