// The words of a problem file: names, ranges and help texts, once for the file, the flags and the help.
#include "diagnostics/observation_tests.h"
#include "nrec/commands/compare.h"
#include "nrec/commands/output_folder.h"
#include "nrec/commands/problem.h"
#include "nrec/commands/simulate.h"
#include "nrec/kernels/dispatch.h"

namespace nrec {

void describe(OptionTable& table, SimulationOptions& options) {
  const char* section = "simulations";
  table.add(section, "files", &options.files,
            "theta and x: .npz, .h5, .csv with named columns, or a pair of .npy or .csv files");
  table.add(section, "task", &options.task, {},
            "a built-in task, which brings its own parameters; instead of files");
  table.add(
      section, "command", &options.command, {},
      "an external program: its words, with {name} for a parameter, {seed}, {row}, {theta_file}, {x_file}; "
      "docs/howto/simulators.md");
  table.add(section, "library", &options.library, {},
            "a shared library with the functions of nrec/simulator_interface.h; instead of command");
  table
      .add(
          section, "num_simulations", &options.num_simulations, {.low = 1, .high = 1e9},
          "simulations to make; of files and of a campaign alone: use only the first so many rows (if given)")
      .aliases = {"n"};
  table.add(
      section, "protocol", &options.protocol, {"", "run", "lines", "npy"},
      "how the command is spoken to: run, once per row; lines, a line of theta in and a line of x out; npy, "
      "blocks of rows; empty: run when the command has placeholders, else lines");
  table.add(section, "line", &options.line, {},
            "protocol lines: what is written for a row, with {theta}, {seed}, {row}, {name}; with {row} "
            "answers must "
            "begin with the row, too");
  table.add(section, "folder", &options.folder, {},
            "working folder of the command, from which its names start; empty: that of the problem file");
  table.add(section, "campaign", &options.campaign, {},
            "folder of the stored rows; empty: <name of the problem file>_campaign in the current folder");
  table.add(section, "workers", &options.workers, {.low = 0, .high = 4096},
            "rows that are simulated side by side; 0: as many as threads");
  table.add(section, "row_time_limit", &options.row_time_limit, {.low = 0},
            "seconds after which a row is ended and counts as timed out; 0: max(60, 20 times the slowest row "
            "of the "
            "pre-flight)");
  table.add(section, "memory_limit", &options.memory_limit, {.low = 0},
            "MB of memory for each simulator process; 0: no limit");
  table.add(section, "retries", &options.retries, {.low = 0, .high = 100},
            "how often a failed row is tried again, with the same seed");
  table.add(section, "rows_per_process", &options.rows_per_process, {.low = 0},
            "rows after which a program that answers row after row is restarted; 0: when its memory grows");
  table.add(section, "batch_rows", &options.batch_rows, {.low = 1, .high = 1e6},
            "protocol npy: rows of a block");
  table.add(section, "scratch", &options.scratch, {},
            "where rows get their folders for temporary files; empty: the system's folder");
  table.add(section, "max_failure_fraction", &options.max_failure_fraction, {.low = 0, .high = 1},
            "simulating ends when more than this share of at least 100 rows failed; 1: never");
  table.add(
      section, "failures", &options.failures, {"stop", "model", "drop"},
      "failed simulations (also nan or infinity in x): end with an explanation; learn the chance of success "
      "at every theta and multiply it in; or leave them out, which biases the posterior");
  table.add(
      section, "component_per_call", &options.component_per_call,
      "task gaussian_mixture only: one mixture component for all simulations, a defect of early benchmarks");
}

void describe(OptionTable& table, ObservationOptions& options) {
  table.add("observation", "file", &options.file, {}, "the observed data: .npy, .npz (array x_o), .csv, .h5")
      .aliases = {"observation"};
  table.add("observation", "row", &options.row, {.low = -1},
            "which row of a file with several observations, counted from 0; -1: the file holds one");
  table.add("observation", "rows", &options.rows, {"one", "iid", "batch"},
            "what the rows of the file are. one: a single observation; iid: one data set of independent "
            "rows, whose log ratios add; batch: observations of their own, a posterior for each");
}

void describe_settings(OptionTable& table, std::string& settings) {
  table.add("training", "settings", &settings, {"default", "published"},
            "what [network] and [training] are where nothing else is said: nrec's defaults, or the published "
            "setting of NRE-C (batch norm, K = 99, up to 1,000 epochs), which takes far longer");
}

std::string broken_num_predicted(std::int64_t num_predicted) {
  constexpr auto kLeast = static_cast<std::int64_t>(kLeastPredicted);
  if (num_predicted == 0 || num_predicted >= kLeast) return "";
  return "num_predicted = " + std::to_string(num_predicted) +
         " is too few to hold an observation against; give " + std::to_string(kLeast) +
         " or more, or 0 to leave it to nrec";
}

void describe_num_predicted(OptionTable& table, std::string_view section, std::int64_t& num_predicted) {
  table.add(section, "num_predicted", &num_predicted, {.low = 0, .high = 1e6},
            "data that the full check simulates at the posterior of each observation; 0: 1,000 of a built-in "
            "task, 200 of a simulator of your own; infer takes them from its draws, so at most num_samples");
}

void describe(OptionTable& table, CheckOptions& options) {
  table
      .add("check", "level", &options.level, {"none", "quick", "full"},
           "checks of the result; full: those of nrec check, on up to 1,000 held-out rows of the training")
      .aliases = {"check"};
}

void describe(OptionTable& table, RunOptions& options) {
  table.add("run", "seed", &options.seed, {.high = 9e15}, "seed of all random choices");
  describe_without_seed(table, options);
}

void describe_without_seed(OptionTable& table, RunOptions& options) {
  const char* section = "run";
  table.add(section, "threads", &options.threads, {.low = 0, .high = 1024},
            "threads; 0: one per core; results do not depend on it");
  table.add(section, "time_limit", &options.time_limit, {.low = 0, .low_open = true},
            "most seconds of the run; what is done by then is kept");
  std::vector<std::string> isas = {"auto"};
  for (const IsaStatus& isa : isa_list()) isas.push_back(isa.name);
  table.add(section, "isa", &options.isa, isas,
            "instruction set of the kernels; the environment variable NREC_ISA sets it, too");
  table.add(section, "precision", &options.precision, {"auto", "f32", "bf16"},
            "of the operands of hidden layers; auto: f32, unless isa names one of bf16. bf16 needs AMX; with "
            "isa avx2 or ref it is rounded in software, which is slow");
}

void describe(OptionTable& table, Problem& problem) {
  describe(table, problem.simulations);
  describe(table, problem.observation);
  describe(table, problem.network);
  describe(table, problem.training);
  describe(table, problem.sampling);
  describe(table, problem.check);
  describe_num_predicted(table, "check", problem.check.num_predicted);
  describe(table, problem.run);
}

void describe(OptionTable& table, OutputOptions& options, bool can_resume) {
  table.add("", "out", &options.out, {}, "folder for the results");
  table.add("", "overwrite", &options.overwrite, "replace the results of an earlier run in that folder");
  if (can_resume) table.add("", "resume", &options.resume, "go on with the run in that folder");
}

void describe(OptionTable& table, SimulateOptions& options) {
  table.add("", "out", &options.out, {}, "folder of the campaign; the same as --campaign");
  table.add("", "shard", &options.shard, {},
            "only a part of the rows, 3/16 for the third of sixteen; in a Slurm job array the part is found "
            "by itself");
  table.add("", "accept_changes", &options.accept_changes,
            "go on though the problem or the simulator is not the one that the stored rows were made with");
}

void describe(OptionTable& table, ExportOptions& options) {
  table.add("", "out", &options.out, {}, ".npz file to write; empty: <campaign>.npz in the current folder");
  table
      .add("", "num_simulations", &options.num_simulations, {.low = 0, .high = 1e9},
           "rows to write, from the first; 0: all")
      .aliases = {"n"};
  table.add("", "overwrite", &options.overwrite, "replace the file if it is there");
}

void describe(OptionTable& table, CompareOptions& options) {
  table.add("", "metric", &options.metric,
            "what to compute: c2st, mmd, moments (errors of means and sds), gaussian_kl, c2st_regularised");
  table.add("", "z_score", &options.z_score, {"auto", "on", "off"},
            "scale both sets by mean and sd of the reference; auto: for c2st only");
  table.add("", "max_rows", &options.max_rows, {.low = 0, .high = 1e9},
            "use only the first rows of each file; 0: all");
  table.add("", "row", &options.row, {.low = -1},
            "the observation, counted from 0, whose draws are compared where a file holds those of a batch");
}

}  // namespace nrec
