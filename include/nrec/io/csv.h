#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nrec/core/array.h"

namespace nrec {

/// A table of numbers from a text file.
struct CsvTable {
  std::vector<std::string> columns;  // from the header line; empty when the file has none
  Matrix<double> values;             // [rows, columns]
};

/// The table of a .csv file, plain or compressed as .csv.bz2 (told by its content).
///
/// The first line is a header when any of its cells is no number (nan and inf are numbers). Cells are
/// separated by commas, or by tabs or semicolons if the first line has any; names may be quoted as in RFC
/// 4180. Numbers have a decimal point whatever the locale says; nan, inf and -inf are values. Blank lines at
/// the end, a byte-order mark and either line end are accepted.
///
/// Errors   IoError: missing or damaged file, more (inflated) bytes than max_bytes, nothing in it, a row of
///          another length or a cell that is no number (with line and column), an empty or repeated name in the
///          header, one with a control character
/// Numerics each number is the float64 nearest to its text; magnitudes too small for float64 become 0, too
///          large ones are refused
/// Cost     O(bytes); holds the text and the values at the same time
CsvTable read_csv(const std::filesystem::path& path, std::uint64_t max_bytes = std::uint64_t{4} << 30);

/// The same from memory; `where` starts the messages.
CsvTable parse_csv(std::string_view text, std::string_view where);

/// Text of a table: a header line unless `columns` is empty, commas, "\n", and the shortest numbers that read
/// back as the same bits. Errors   ShapeError: number of names and columns differ; ConfigError: an empty or
/// repeated name, one with a control character
std::string csv_text(std::span<const std::string> columns, MatrixView<const double> values);

/// Writes csv_text with the care of write_file.
void write_csv(const std::filesystem::path& path, std::span<const std::string> columns,
               MatrixView<const double> values);

}  // namespace nrec
