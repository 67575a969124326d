#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands/benchmark_schedule.h"
#include "nrec/commands/benchmark.h"
#include "nrec/tasks/task.h"

namespace nrec {

/// One network: what is trained, on how much.
struct BenchmarkCell {
  std::string task, algorithm;
  std::int64_t budget = 0;
  std::uint64_t seed = 0;

  /// "two_moons-nre-c-1000-seed1": name of its files.
  std::string name() const;
  /// "two_moons nre-c 1000 seed 1", for messages.
  std::string text() const;
};

/// The lists of the options, read.
struct BenchmarkPlan {
  std::vector<std::string> tasks, algorithms;
  std::vector<std::int64_t> budgets;
  std::vector<std::uint64_t> seeds;
  std::vector<int> observations;

  /// Budgets outside, then tasks, algorithms, seeds: small budgets come first.
  std::vector<BenchmarkCell> cells() const;
};

/// Errors   UsageError with the flag and the word; ConfigError: unknown task
BenchmarkPlan benchmark_plan(const BenchmarkOptions& options);

/// The one task that knows component_per_call.
inline constexpr std::string_view kMixtureTask = "gaussian_mixture";
/// The task that simulates for a cell; its reference posteriors are those of the task without switches.
std::unique_ptr<Task> cell_task(const BenchmarkOptions& options, const BenchmarkCell& cell);

/// Training of a cell: the loss of its algorithm, the batch of its budget.
TrainingOptions cell_training(const BenchmarkOptions& options, const BenchmarkCell& cell);

/// Everything that the numbers of a cell depend on, by the names of its record.
Record cell_settings(const BenchmarkOptions& options, const BenchmarkCell& cell);

/// Errors   what training refuses for a cell of any task: num_classes too large for the budget, options
void check_cells(const BenchmarkOptions& options, const BenchmarkPlan& plan, const RunContext& run);

/// What the schedule must know of a cell.
ScheduledCell scheduled_cell(const BenchmarkOptions& options, const BenchmarkCell& cell);

}  // namespace nrec
