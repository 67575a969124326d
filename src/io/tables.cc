#include "nrec/io/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "io/byte_source.h"
#include "nrec/core/error.h"
#include "nrec/core/suggest.h"
#include "nrec/io/csv.h"
#include "nrec/io/hdf5.h"
#include "nrec/io/npy.h"
#include "nrec/io/npz.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

constexpr const char* kStatusArray = "status";

enum class Format { text, npy, npz, hdf5 };

// Told by the first bytes; an extension that promises another format is left to that format's own refusal.
Format format_of(const fs::path& path) {
  io::FileSource source(path);
  std::array<char, 8> buffer{};
  const std::string_view start(buffer.data(), source.read(buffer));
  const fs::path extension = path.extension();
  if (start.starts_with("\x93NUMPY") || extension == ".npy") return Format::npy;
  if (start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06") || extension == ".npz")
    return Format::npz;
  if (start == "\x89HDF\r\n\x1a\n" || extension == ".h5" || extension == ".hdf5" || extension == ".nc")
    return Format::hdf5;
  return Format::text;
}

// The array of an archive that is meant by "the samples".
std::string chosen_array(const std::vector<std::string>& known, std::span<const std::string> preferred,
                         const std::string& where) {
  for (const std::string& name : preferred) {
    if (std::find(known.begin(), known.end(), name) != known.end()) return name;
  }
  if (known.size() == 1) return known[0];
  if (known.empty()) throw IoError(fmt::format("{}: holds no array; store one", where));
  throw IoError(fmt::format(
      "{}: holds several arrays ({}) and none is called {}; store the samples alone or under that name",
      where, fmt::join(known, ", "),
      preferred.empty() ? "as expected" : fmt::format("{}", fmt::join(preferred, " or "))));
}

void check_table(const Matrix<double>& table, const std::string& where) {
  if (table.rows() == 0 || table.cols() == 0) {
    throw ShapeError(fmt::format("{}: has {} rows and {} columns of numbers; at least one of each is needed",
                                 where, table.rows(), table.cols()));
  }
}

SampleTable from_array(NumericArray array, const std::string& where) {
  SampleTable table;
  table.one_dimensional = array.shape.size() == 1;
  table.shape = array.shape;
  table.values = to_matrix(std::move(array), where);
  return table;
}

std::vector<std::string> array_names(const fs::path& path, Format format) {
  return format == Format::npz ? npz_names(path) : hdf5_names(path);
}

/// Also of one that cannot be read: its reader says why.
bool has_array(const fs::path& path, Format format, const std::string& name) {
  if (format != Format::npz) return hdf5_has(path, name);
  const std::vector<std::string> names = npz_names(path);
  return std::ranges::find(names, name) != names.end();
}

NumericArray read_one(const fs::path& path, const std::string& name) {
  const std::vector<std::string> names = {name};
  return std::move(read_named(path, names).at(0).second);
}

// "theta", "theta_1", "theta1", "theta[0]": the word alone or followed by something that is not a letter.
bool is_column_of(std::string_view column, std::string_view word) {
  if (!column.starts_with(word)) return false;
  if (column.size() == word.size()) return true;
  const char next = column[word.size()];
  return next == '_' || next == '[' || next == '.' || (next >= '0' && next <= '9');
}

Matrix<double> selected(const Matrix<double>& table, const std::vector<std::size_t>& columns) {
  Matrix<double> result(table.rows(), columns.size());
  for (std::size_t i = 0; i < table.rows(); ++i) {
    for (std::size_t j = 0; j < columns.size(); ++j) result(i, j) = table(i, columns[j]);
  }
  return result;
}

// Columns of theta in the order of parameter_names.
std::vector<std::size_t> named_columns(const CsvTable& table, std::span<const std::string> parameter_names,
                                       const std::string& where) {
  std::vector<std::size_t> columns;
  for (const std::string& name : parameter_names) {
    const auto found = std::find(table.columns.begin(), table.columns.end(), name);
    if (found == table.columns.end()) {
      const std::string nearest = nearest_word(name, table.columns);
      throw IoError(fmt::format("{}: has no column \"{}\" for that parameter; it holds: {}{}", where, name,
                                fmt::join(table.columns, ", "),
                                nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest)));
    }
    columns.push_back(static_cast<std::size_t>(found - table.columns.begin()));
  }
  return columns;
}

PairTable split_columns(const CsvTable& table, std::span<const std::string> parameter_names,
                        const std::string& where) {
  if (table.columns.empty()) {
    throw IoError(
        fmt::format("{}: has no header line, so parameters and data cannot be told apart; name the columns, "
                    "or give two files theta.csv and x.csv",
                    where));
  }
  std::vector<std::size_t> theta, x;
  if (!parameter_names.empty()) theta = named_columns(table, parameter_names, where);
  for (std::size_t j = 0; j < table.columns.size(); ++j) {
    const std::string& name = table.columns[j];
    if (!parameter_names.empty()) {
      if (std::find(theta.begin(), theta.end(), j) == theta.end()) x.push_back(j);
    } else if (is_column_of(name, "theta") || is_column_of(name, "parameter")) {
      theta.push_back(j);
    } else if (is_column_of(name, "x") || is_column_of(name, "data")) {
      x.push_back(j);
    } else {
      throw IoError(
          fmt::format("{}: column \"{}\" is neither a parameter nor data; call it theta_... or x_..., or "
                      "name the parameters",
                      where, name));
    }
  }
  PairTable pairs;
  for (const std::size_t j : theta) pairs.theta_names.push_back(table.columns[j]);
  for (const std::size_t j : x) pairs.x_names.push_back(table.columns[j]);
  pairs.theta = selected(table.values, theta);
  pairs.x = selected(table.values, x);
  return pairs;
}

// How each simulation ended, one number a row.
std::vector<double> status_list(NumericArray array, std::size_t rows, const std::string& where) {
  if (array.dtype == "|b1") {
    throw DomainError(fmt::format(
        "{}: \"status\" holds true and false, which do not say which of them is a failure; write "
        "numbers, 0 for success and 1 to 5 as docs/formats/campaign.md says, or give it another name",
        where));
  }
  const bool is_list =
      array.shape.size() == 1 || (array.shape.size() == 2 && array.shape[1] == 1);  // [N] or [N, 1]
  if (is_list && array.shape[0] == rows) return std::move(array.values);
  throw ShapeError(fmt::format(
      "{}: \"status\" has the shape {} but theta has {} rows; it says how each simulation ended, one number "
      "a row; give it another name if it is something else",
      where, shape_text(array.shape), rows));
}

PairTable pairs_of_one_file(const fs::path& path, std::span<const std::string> parameter_names) {
  const std::string where = path.string();
  const Format format = format_of(path);
  if (format == Format::text) return split_columns(read_csv(path), parameter_names, where);
  if (format == Format::npy) {
    throw IoError(fmt::format(
        "{}: holds one array where theta and x are needed; give two files, theta.npy and x.npy", where));
  }
  PairTable pairs;
  pairs.theta = to_matrix(read_one(path, "theta"), where + ": \"theta\"");
  pairs.x = to_matrix(read_one(path, "x"), where + ": \"x\"");
  if (has_array(path, format, kStatusArray))
    pairs.status = status_list(read_one(path, kStatusArray), pairs.theta.rows(), where);
  return pairs;
}

PairTable pairs_of_two_files(fs::path first, fs::path second) {
  const auto says_theta = [](const fs::path& path) {
    return path.filename().string().find("theta") != std::string::npos;
  };
  if (says_theta(second) && !says_theta(first)) std::swap(first, second);
  const std::vector<std::string> theta_name = {"theta"}, x_name = {"x"};
  SampleTable theta = read_samples(first, theta_name);
  SampleTable x = read_samples(second, x_name);
  return {std::move(theta.names), std::move(x.names), std::move(theta.values), std::move(x.values), {}};
}

}  // namespace

SampleTable read_samples(const fs::path& path, std::span<const std::string> preferred_names) {
  const std::string where = path.string();
  const Format format = format_of(path);
  SampleTable table;
  if (format == Format::text) {
    CsvTable csv = read_csv(path);
    table.names = std::move(csv.columns);
    table.values = std::move(csv.values);
  } else if (format == Format::npy) {
    table = from_array(read_npy(path), where);
  } else {
    const std::string name = chosen_array(array_names(path, format), preferred_names, where);
    table = from_array(read_one(path, name), fmt::format("{}: \"{}\"", where, name));
    table.array = name;
  }
  check_table(table.values, where);
  return table;
}

NamedArrays read_named(const fs::path& path, std::span<const std::string> names) {
  const Format format = format_of(path);
  if (format == Format::npz) return read_npz(path, names);
  if (format == Format::hdf5) return read_hdf5(path, names);
  throw IoError(fmt::format("{}: has no named arrays ({}); give a .npz or .h5 file", path.string(),
                            fmt::join(names, ", ")));
}

PairTable read_pairs(std::span<const fs::path> files, std::span<const std::string> parameter_names) {
  if (files.empty() || files.size() > 2) {
    throw ConfigError(fmt::format(
        "files: {} names where one file with theta and x, or two files (theta, x) are needed", files.size()));
  }
  PairTable pairs = files.size() == 1 ? pairs_of_one_file(files[0], parameter_names)
                                      : pairs_of_two_files(files[0], files[1]);
  const std::string where =
      files.size() == 1 ? files[0].string() : fmt::format("{} and {}", files[0].string(), files[1].string());
  check_table(pairs.theta, where + ": theta");
  check_table(pairs.x, where + ": x");
  if (pairs.theta.rows() != pairs.x.rows()) {
    throw ShapeError(
        fmt::format("{}: theta has {} rows but x has {}; row i of both must belong to the same simulation",
                    where, pairs.theta.rows(), pairs.x.rows()));
  }
  return pairs;
}

}  // namespace nrec
