#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "commands/benchmark_plan.h"

namespace nrec {

/// Published numbers of a table, by task, algorithm and budget.
using Anchors = std::map<std::tuple<std::string, std::string, std::int64_t>, double>;

/// Reads anchor tables: .csv with a header that names `task`, `algorithm`, `budget` (or num_simulations) and the value column. Algorithms
/// are written as here or in capitals; NRE is nre-b. Rows of other algorithms are passed over.
///
/// Errors   IoError: unreadable, a missing column, a cell that is no number; ConfigError: two rows for one of the cells asked for
Anchors read_anchors(std::span<const std::string> files, const std::string& column,
                     const BenchmarkPlan& plan);

/// One line per task, algorithm and budget: means over seeds, with the sd of C2ST over them.
class BenchmarkTable {
 public:
  BenchmarkTable(const BenchmarkPlan& plan, std::span<const Record> cells, Anchors anchors);

  /// All columns; those of seconds come last.
  std::string csv() const;
  /// The columns that people compare, rounded, and means over tasks where there are several.
  std::string markdown() const;

 private:
  struct Row {
    std::string task, algorithm;
    std::int64_t budget = 0;
    std::size_t num_seeds = 0, num_failed = 0;
    std::vector<double> values;  // as kColumns
  };
  void add_row(const std::string& task, const std::string& algorithm, std::int64_t budget,
               std::span<const Record> cells);
  std::vector<Row> averages() const;

  Anchors anchors_;
  std::vector<Row> rows_;
};

}  // namespace nrec
