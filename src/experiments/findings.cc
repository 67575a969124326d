#include "experiments/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "io/csv_lines.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/core/random.h"
#include "nrec/io/file.h"

namespace nrec {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kResamples = 2000;
constexpr std::uint64_t kMostAnchorBytes = std::uint64_t{64} << 20;

std::string quoted_cell(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string result = "\"";
  for (const char c : cell) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (!line.empty()) line += ",";
    line += quoted_cell(cell);
  }
  return line + "\n";
}

/// Equal as text or as numbers: 1.0 and 1, inf and inf.
bool equal_cells(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const std::optional<double> x = io::parse_number(a), y = io::parse_number(b);
  return x && y && *x == *y;
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    for (std::size_t i = first; i <= last; ++i) result[order[i]] = 0.5 * static_cast<double>(first + last);
    first = last + 1;
  }
  return result;
}

}  // namespace

void TidyTable::add(std::vector<std::string> row) {
  if (row.size() != columns_.size())
    throw ShapeError(fmt::format("table with {} columns: a row has {} cells", columns_.size(), row.size()));
  rows_.push_back(std::move(row));
}

std::string TidyTable::csv() const {
  std::string text = csv_line(columns_);
  for (const auto& row : rows_) text += csv_line(row);
  return text;
}

std::string cell_text(double value) {
  return std::isnan(value) ? std::string() : fmt::format("{:.10g}", value);
}

AnchorRows::AnchorRows(const std::string& folder, std::string_view name) {
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::error_code code;
  if (folder.empty() || !std::filesystem::exists(path, code)) return;
  const std::string content = read_file(path, kMostAnchorBytes);
  io::CsvLines lines(content, path.string());
  std::vector<std::string_view> cells;
  if (!lines.next(cells)) return;
  const std::vector<std::string> names(cells.begin(), cells.end());
  while (lines.next(cells)) {
    if (cells.size() != names.size())
      throw IoError(fmt::format("{}:{}: has {} cells where the header has {}", path.string(), lines.line(),
                                cells.size(), names.size()));
    std::map<std::string, std::string> row;
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = std::string(cells[i]);
    rows_.push_back(std::move(row));
  }
}

double AnchorRows::number(const std::map<std::string, std::string>& where, std::string_view column) const {
  const std::map<std::string, std::string>* found = nullptr;
  for (const auto& row : rows_) {
    const bool fits = std::all_of(where.begin(), where.end(), [&](const auto& wanted) {
      const auto there = row.find(wanted.first);
      return there != row.end() && equal_cells(there->second, wanted.second);
    });
    if (!fits) continue;
    if (found) return kNan;  // not the only one
    found = &row;
  }
  if (!found) return kNan;
  const auto cell = found->find(std::string(column));
  return cell == found->end() ? kNan : io::parse_number(cell->second).value_or(kNan);
}

Claim claim(std::string text, bool holds, bool is_tested, std::string found, std::string anchor) {
  const ClaimState state = !is_tested ? ClaimState::not_tested
                           : holds    ? ClaimState::reproduced
                                      : ClaimState::not_reproduced;
  if (!is_tested) found = "not enough networks, or no published numbers";
  return {std::move(text), state, std::move(found), std::move(anchor)};
}

void leave_untested(Findings& findings) {
  for (Claim& one : findings.claims) one.state = ClaimState::not_tested;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0.0;
  std::size_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? kNan : sum / static_cast<double>(count);
}

double sd_of(const std::vector<double>& values) {
  const double centre = mean_of(values);
  double squares = 0.0;
  std::size_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    squares += (value - centre) * (value - centre);
    ++count;
  }
  return count < 2 ? kNan : std::sqrt(squares / static_cast<double>(count - 1));
}

double pearson(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() != y.size() || x.size() < 3) return kNan;
  const double mean_x = mean_of(x), mean_y = mean_of(y);
  double xy = 0.0, xx = 0.0, yy = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : kNan;
}

double spearman(const std::vector<double>& x, const std::vector<double>& y) {
  return pearson(ranks(x), ranks(y));
}

std::pair<double, double> bootstrap_interval(const std::vector<double>& values) {
  if (values.size() < 2) return {kNan, kNan};
  RandomStream random(values.size(), Stream::check);
  std::vector<double> means;
  for (int r = 0; r < kResamples; ++r) {
    double sum = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto pick = static_cast<std::size_t>(random.uniform() * static_cast<double>(values.size()));
      sum += values[std::min(pick, values.size() - 1)];
    }
    means.push_back(sum / static_cast<double>(values.size()));
  }
  std::sort(means.begin(), means.end());
  const auto at = [&](double p) { return means[static_cast<std::size_t>(p * (kResamples - 1))]; };
  return {at(0.025), at(0.975)};
}

}  // namespace nrec
