#include "simulation/campaign_merge.h"

#include <fmt/format.h>

#include "simulation/campaign_schema.h"

namespace nrec::simulation {

RowMerge::RowMerge(std::span<const OpenDatabase> databases, std::string_view columns) {
  const std::string sql =
      fmt::format("SELECT row{}{} FROM rows ORDER BY row", columns.empty() ? "" : ", ", columns);
  for (const OpenDatabase& open : databases) statements_.emplace_back(open.database, sql);
}

bool RowMerge::next() {
  if (!has_started_) {
    for (std::size_t i = 0; i < statements_.size(); ++i) advance(i);
    has_started_ = true;
  } else if (!heads_.empty()) {
    for (const std::uint64_t done = row(); !heads_.empty() && row() == done;) {
      const std::size_t database = heads_.top().second;
      heads_.pop();
      advance(database);
    }
  }
  return !heads_.empty();
}

void RowMerge::advance(std::size_t database) {
  Statement& statement = statements_[database];
  if (!statement.step()) return;
  const std::int64_t row = statement.integer(0);
  if (row < 0) throw_damaged(statement.path(), fmt::format("it has a row with the number {}", row));
  heads_.emplace(static_cast<std::uint64_t>(row), database);
}

RowStatus row_status(const Statement& statement, int column, std::uint64_t row) {
  const std::int64_t status = statement.integer(column);
  if (!statement.is_integer(column) || status < 0 || status >= kNumStatuses) {
    throw_damaged(statement.path(), fmt::format("row {} has the status {}", row, statement.text(column)));
  }
  return static_cast<RowStatus>(status);
}

}  // namespace nrec::simulation
