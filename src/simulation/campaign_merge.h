#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "simulation/campaign_folder.h"

namespace nrec::simulation {

// Walks through the rows of several databases in the order of their numbers. A number that several have is met once, in
// the first of them. Holds one row per database.
class RowMerge {
 public:
  // `columns` of the table rows, separated by commas; they become the columns 1, 2, ... of statement().
  RowMerge(std::span<const OpenDatabase> databases, std::string_view columns);

  // To the next row; false: there is none. Errors   DatabaseError: damaged
  bool next();
  std::uint64_t row() const { return heads_.top().first; }
  // Which of the databases it comes from.
  std::size_t database() const { return heads_.top().second; }
  const Statement& statement() const { return statements_[database()]; }

 private:
  using Head = std::pair<std::uint64_t, std::size_t>;  // row, database: the smallest is the next one
  void advance(std::size_t database);

  std::vector<Statement> statements_;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads_;
  bool has_started_ = false;
};

// Column `column` of a row as a status. Errors   DatabaseError: it is none
RowStatus row_status(const Statement& statement, int column, std::uint64_t row);

}  // namespace nrec::simulation
