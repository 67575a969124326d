#include "nrec/io/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/bzip2.h"
#include "io/csv_lines.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/core/printable_text.h"
#include "nrec/io/file.h"

namespace nrec {

namespace {

using Cells = std::vector<std::string_view>;

// "1,5": a number once its comma is a point.
bool has_decimal_comma(std::string_view cell) {
  const std::size_t comma = cell.find(',');
  if (comma == std::string_view::npos) return false;
  std::string pointed(cell);
  pointed[comma] = '.';
  return io::parse_number(pointed).has_value();
}

// Numbers with nothing but spaces between them.
bool has_spaced_numbers(std::string_view cell) {
  const std::size_t space = cell.find_first_of(" \t");
  return space != std::string_view::npos && io::parse_number(cell.substr(0, space)).has_value();
}

constexpr const char* kDecimalCommaHint = "decimal commas are not read; write numbers with a decimal point";
constexpr const char* kSpacesHint =
    "the numbers are separated by spaces; separate them by commas (numpy.savetxt(..., delimiter=\",\"))";

class CsvParser {
 public:
  CsvParser(std::string_view text, std::string_view where) : where_(where), lines_(text, where) {
    if (text.find('\0') != std::string_view::npos) {
      throw IoError(fmt::format(
          "{}: holds zero bytes and so is no text; is it a binary file with the wrong name?", where));
    }
  }

  CsvTable parse() {
    CsvTable table;
    Cells cells;
    if (!lines_.next(cells))
      throw IoError(
          fmt::format("{}: holds no table, only blank lines or nothing; check that it was written", where_));
    num_columns_ = cells.size();
    std::vector<double> values;
    if (is_header(cells)) {
      table.columns = header(cells);
    } else {
      append_row(cells, values);
    }
    while (lines_.next(cells)) append_row(cells, values);
    const std::size_t rows = values.size() / num_columns_;
    table.values = Matrix<double>(rows, num_columns_, std::move(values));
    return table;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw IoError(fmt::format("{}: line {}: {}", where_, lines_.line(), what));
  }

  bool is_header(const Cells& cells) const {
    if (std::any_of(cells.begin(), cells.end(), has_decimal_comma)) fail(kDecimalCommaHint);
    if (cells.size() == 1 && has_spaced_numbers(cells[0])) fail(kSpacesHint);
    return std::any_of(cells.begin(), cells.end(),
                       [](std::string_view cell) { return !cell.empty() && !io::parse_number(cell); });
  }

  std::vector<std::string> header(const Cells& cells) const {
    std::vector<std::string> names(cells.begin(), cells.end());
    // numpy.savetxt starts its header with "# ".
    if (names[0].starts_with('#'))
      names[0].erase(0, std::min(names[0].find_first_not_of("# "), names[0].size()));
    for (std::size_t j = 0; j < names.size(); ++j) {
      if (has_control_character(names[j])) {
        fail(fmt::format("column {} is named {}, which holds a control character; rename it", j + 1,
                         quoted_excerpt(names[j])));
      }
      if (names[j].empty()) {
        fail(
            fmt::format("column {} has no name; name it, or leave it out if it is an index (pandas: "
                        "to_csv(..., index=False))",
                        j + 1));
      }
      const auto first = std::find(names.begin(), names.end(), names[j]);
      if (first != names.begin() + static_cast<std::ptrdiff_t>(j)) {
        fail(fmt::format("columns {} and {} are both named \"{}\"; rename one", first - names.begin() + 1,
                         j + 1, names[j]));
      }
    }
    return names;
  }

  void append_row(const Cells& cells, std::vector<double>& values) const {
    if (cells.size() != num_columns_) {
      fail(fmt::format("has {} cells but the first line has {}; {}", cells.size(), num_columns_,
                       cells.size() == 2 * num_columns_ && lines_.separator() == ','
                           ? kDecimalCommaHint
                           : "every row needs the same number (nan for a missing value)"));
    }
    for (std::size_t j = 0; j < cells.size(); ++j) {
      const auto number = io::parse_number(cells[j]);
      if (!number) fail_cell(cells[j], j);
      values.push_back(*number);
    }
  }

  [[noreturn]] void fail_cell(std::string_view cell, std::size_t j) const {
    const char* remedy = "write a number with a decimal point, or nan";
    if (cell.empty()) fail(fmt::format("column {} is empty; write nan for a missing value", j + 1));
    if (has_decimal_comma(cell)) remedy = kDecimalCommaHint;
    if (num_columns_ == 1 && has_spaced_numbers(cell)) remedy = kSpacesHint;
    fail(fmt::format("column {}: {} is not a number that float64 can hold; {}", j + 1, quoted_excerpt(cell),
                     remedy));
  }

  std::string_view where_;
  io::CsvLines lines_;
  std::size_t num_columns_ = 0;
};

std::string quoted_if_needed(const std::string& name) {
  const bool plain = name.find_first_of(",;\t\"\r\n#") == std::string::npos && name.front() != ' ' &&
                     name.back() != ' ' && !io::parse_number(name);
  if (plain) return name;
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

CsvTable parse_csv(std::string_view text, std::string_view where) { return CsvParser(text, where).parse(); }

CsvTable read_csv(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const std::string bytes = read_file(path, max_bytes);
  if (io::is_bzip2(bytes))
    return parse_csv(io::inflate_bzip2(bytes, max_bytes, path.string()), path.string());
  if (path.extension() == ".bz2") {
    throw IoError(fmt::format(
        "{}: is named .bz2 but does not hold bzip2 data; copy it again, or rename it if it is plain text",
        path.string()));
  }
  return parse_csv(bytes, path.string());
}

std::string csv_text(std::span<const std::string> columns, MatrixView<const double> values) {
  if (!columns.empty() && columns.size() != values.cols) {
    throw ShapeError(fmt::format("write_csv: {} column names for {} columns; give one name per column",
                                 columns.size(), values.cols));
  }
  std::string text;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    if (columns[j].empty())
      throw ConfigError(fmt::format("write_csv: column {} has no name; name every column", j + 1));
    if (has_control_character(columns[j])) {
      throw ConfigError(fmt::format("write_csv: the column name {} holds a control character; rename it",
                                    quoted_text(columns[j])));
    }
    if (std::find(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(j), columns[j]) !=
        columns.begin() + static_cast<std::ptrdiff_t>(j)) {
      throw ConfigError(
          fmt::format("write_csv: the column name \"{}\" is used twice; rename one", columns[j]));
    }
    text += (j > 0 ? "," : "") + quoted_if_needed(columns[j]);
  }
  if (!columns.empty()) text += '\n';
  for (std::size_t i = 0; i < values.rows; ++i) {
    for (std::size_t j = 0; j < values.cols; ++j) {
      if (j > 0) text += ',';
      text += number_text(values(i, j));
    }
    text += '\n';
  }
  return text;
}

void write_csv(const std::filesystem::path& path, std::span<const std::string> columns,
               MatrixView<const double> values) {
  write_file(path, csv_text(columns, values));
}

}  // namespace nrec
