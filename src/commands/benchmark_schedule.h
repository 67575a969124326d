#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "nrec/core/run_context.h"

namespace nrec {

/// A network to be trained and measured, as far as its time and place are concerned.
struct ScheduledCell {
  std::string text;          // for messages
  std::uint64_t seed = 0;    // of its context
  double cost = 1.0;         // in any unit, one for all: for the time left only
  std::uint64_t memory = 1;  // at its worst, bytes
};

/// Does cell number `index` with a context of its own: false when it was stopped before its end. Called from several threads
/// at once.
using CellWork = std::function<bool(std::size_t index, const RunContext& run)>;

/// How a schedule ended.
enum class ScheduleStatus { done, stopped, budget_spent };

/// Runs cells side by side, each in a thread of its own with its share of the threads of `run`. Progress and a line per
/// finished cell go to the log of `run` from the calling thread. A stop request or the time limit stops the cells that
/// run; an exception of a cell stops the others and is thrown here.
///
/// `parallel` 0: as many as there are threads, and as the memory that is available holds. `cells_done_before` counts in the
/// progress alone.
ScheduleStatus run_cells(std::span<const ScheduledCell> cells, std::int64_t parallel,
                         std::size_t cells_done_before, const CellWork& work, const RunContext& run);

}  // namespace nrec
