#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nrec/commands/infer.h"
#include "nrec/commands/problem.h"
#include "nrec/core/options.h"
#include "nrec/core/record.h"
#include "nrec/core/run_context.h"

namespace nrec {

/// Which cells to run, and how. Lists as typed: names, numbers, ranges "1-5".
struct BenchmarkOptions {
  std::vector<std::string> tasks;  // "all": every task
  std::vector<std::string> algorithms = {"nre-c"};
  std::vector<std::string> budgets = {"1000"};
  std::vector<std::string> seeds = {"1"};
  std::vector<std::string> observations = {"1-10"};
  std::string settings = "default";  // "default" | "published" | "sbibm": what network, training and sampling start from
  std::string sbibm;                 // folder of the published benchmark; empty: nrec's own observations
  std::vector<std::string> anchors;  // tables with published numbers
  std::string anchor_column;         // of the tables; empty: c2st_mean, else c2st
  bool component_per_call = false;   // gaussian_mixture: the published defect (TaskOptions)
  std::int64_t parallel = 0;         // cells side by side; 0: as memory and threads allow
  NetworkOptions network;
  TrainingOptions training;  // loss is set by the algorithm of the cell
  SamplingOptions sampling;
  /// The batch of a cell is its number of validation rows, at most 10,000 (settings "sbibm").
  bool batch_of_validation_size = false;
};

/// Flags of the benchmark and sections [network], [training], [sampling].
void describe(OptionTable& table, BenchmarkOptions& options);

/// Sets network, training and sampling to what `options.settings` names.
///
/// published: that of NRE-C (use_published_settings()). sbibm: that of NRE in the published benchmark (2 blocks of 50, no norm, 10
/// atoms, patience 20, slice sampling). Source: [Miller2022, app. B], [Lueckmann2021, app. B]
void use_settings(BenchmarkOptions& options);

/// Stores flags of the table: --settings first, then the others on top of it.
/// Errors   UsageError: those of apply(); --loss, which the algorithms decide; --fix
void apply_benchmark_flags(std::span<const OptionOverride> flags, const OptionTable& table,
                           BenchmarkOptions& options);

/// What a benchmark hands back.
struct BenchmarkResult {
  CommandResult command;
  std::vector<Record> cells;  // of the cells asked for that are done, in their order
  std::string table;          // Markdown
};

/// Tasks x algorithms x budgets x seeds -> records of cells and a table.
///
/// A cell trains one amortised network, draws for every observation, and measures the draws against reference posteriors. Its
/// record is written as one file when it is done; a cell that was cut off goes on from its last checkpoint of training. The
/// same call goes on after any end, to the same table but for the columns of seconds. docs/howto/benchmark.md
///
/// Errors   UsageError: lists; ConfigError: unknown task, cells in the folder that were made with other settings; ShapeError: a
///          budget too small for num_classes; IoError: missing files of the benchmark, an anchor table without the columns
BenchmarkResult benchmark(const BenchmarkOptions& options, const OutputOptions& output,
                          const RunContext& run);

}  // namespace nrec
