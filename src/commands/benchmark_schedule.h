#pragma once

#include <functional>
#include <string>
#include <vector>

#include "commands/benchmark_plan.h"

namespace nrec {

/// Does one cell with a context of its own: false when it was stopped before its end. Called from several threads at once.
using CellWork = std::function<bool(const BenchmarkCell& cell, const RunContext& run)>;

/// How a schedule ended.
enum class ScheduleStatus { done, stopped, budget_spent };

/// Runs cells side by side, each in a thread of its own with its share of the threads of `run`. Progress and a line per
/// finished cell go to the log of `run` from the calling thread. A stop request or the time limit stops the cells that
/// run; an exception of a cell stops the others and is thrown here.
///
/// `parallel` 0: as many as there are threads, and as the memory that is available holds.
ScheduleStatus run_cells(const std::vector<BenchmarkCell>& cells, const BenchmarkOptions& options,
                         std::size_t cells_done_before, const CellWork& work, const RunContext& run);

}  // namespace nrec
