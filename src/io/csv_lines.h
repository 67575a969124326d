#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nrec::io {

// Splits text into rows of cells. A cell is a view into the text, or into a store of unquoted copies.
class CsvLines {
 public:
  CsvLines(std::string_view text, std::string_view where);

  // Next row that is not blank, or false at the end. Errors: IoError: a blank line inside, a quote that is
  // not closed.
  bool next(std::vector<std::string_view>& cells);
  // Line number, from 1, of the row that next() gave.
  std::size_t line() const { return row_line_; }
  char separator() const { return separator_; }

 private:
  std::string_view plain_cell();
  std::string_view quoted_cell();
  [[noreturn]] void fail(std::string_view what) const;

  std::string_view text_;
  std::string_view where_;
  std::size_t position_ = 0;
  std::size_t line_ = 1;
  std::size_t row_line_ = 0;
  char separator_ = ',';
  std::deque<std::string> unquoted_;  // of the present row; its strings never move
};

// The number a cell holds in full (spaces around it were removed), locale-free; nothing when it is no number
// or too large.
std::optional<double> parse_number(std::string_view cell);

}  // namespace nrec::io
