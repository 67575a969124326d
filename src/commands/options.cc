// The words of a problem file: names, ranges and help texts, once for the file, the flags and the help.
#include "nrec/commands/compare.h"
#include "nrec/commands/output_folder.h"
#include "nrec/commands/problem.h"
#include "nrec/kernels/dispatch.h"

namespace nrec {

void describe(OptionTable& table, SimulationOptions& options) {
  const char* section = "simulations";
  table.add(section, "files", &options.files,
            "theta and x: .npz, .h5, .csv with named columns, or a pair of .npy or .csv files");
  table.add(section, "task", &options.task, {},
            "a built-in task, which brings its own parameters; instead of files");
  table.add(section, "num_simulations", &options.num_simulations, {.low = 1, .high = 1e9},
            "simulations of a task; of files: use only the first so many rows (if given)");
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
}

void describe(OptionTable& table, CheckOptions& options) {
  table
      .add("check", "level", &options.level, {"none", "quick", "full"},
           "checks of the result; full is not in this version")
      .aliases = {"check"};
}

void describe(OptionTable& table, RunOptions& options) {
  const char* section = "run";
  table.add(section, "seed", &options.seed, {.high = 9e15}, "seed of all random choices");
  table.add(section, "threads", &options.threads, {.low = 0, .high = 1024},
            "threads; 0: one per core; results do not depend on it");
  table.add(section, "time_limit", &options.time_limit, {.low = 0, .low_open = true},
            "most seconds of the run; what is done by then is kept");
  std::vector<std::string> isas = {"auto"};
  for (const IsaStatus& isa : isa_list()) isas.push_back(isa.name);
  table.add(section, "isa", &options.isa, isas,
            "instruction set of the kernels; the environment variable NREC_ISA sets it, too");
}

void describe(OptionTable& table, Problem& problem) {
  describe(table, problem.simulations);
  describe(table, problem.observation);
  describe(table, problem.network);
  describe(table, problem.training);
  describe(table, problem.sampling);
  describe(table, problem.check);
  describe(table, problem.run);
}

void describe(OptionTable& table, OutputOptions& options, bool can_resume) {
  table.add("", "out", &options.out, {}, "folder for the results");
  table.add("", "overwrite", &options.overwrite, "replace the results of an earlier run in that folder");
  if (can_resume) table.add("", "resume", &options.resume, "go on with the run in that folder");
}

void describe(OptionTable& table, CompareOptions& options) {
  table.add("", "metric", &options.metric, "what to compute: c2st, mmd, or both");
  table.add("", "z_score", &options.z_score, {"auto", "on", "off"},
            "scale both sets by mean and sd of the reference; auto: for c2st only");
  table.add("", "max_rows", &options.max_rows, {.low = 0, .high = 1e9},
            "use only the first rows of each file; 0: all");
}

}  // namespace nrec
