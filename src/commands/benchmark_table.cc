#include "commands/benchmark_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "io/csv_lines.h"
#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"
#include "nrec/io/file.h"

namespace nrec {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t kMostAnchorBytes = std::uint64_t{64} << 20;

/// A column of the table: its name and the number of the cells' records that it is the mean of.
struct Column {
  const char* name;
  const char* source;    // empty: worked out here
  const char* markdown;  // its title there; empty: not shown
};
constexpr std::array kColumns = {
    Column{"c2st_mean", "c2st_mean", "C2ST"},
    Column{"c2st_sd_over_seeds", "", "sd"},
    Column{"c2st_published", "", "published"},
    Column{"c2st_difference", "", "difference"},
    Column{"c2st_auc", "c2st_auc_mean", ""},
    Column{"mmd2", "mmd2_mean", "MMD^2"},
    Column{"mean_error", "mean_error_mean", "mean error"},
    Column{"sd_error", "sd_error_mean", "sd error"},
    Column{"gaussian_kl", "gaussian_kl_mean", "Gaussian KL"},
    Column{"posterior_mean_error", "posterior_mean_error_mean", ""},
    Column{"posterior_variance_ratio", "posterior_variance_ratio_mean", ""},
    Column{"median_distance", "median_distance_mean", "median distance"},
    Column{"nltp", "nltp_mean", "NLTP"},
    Column{"reference_nltp", "reference_nltp_mean", "exact NLTP"},
    Column{"best_epoch", "best_epoch", ""},
    Column{"simulate_seconds", "simulate_seconds", ""},
    Column{"train_seconds", "train_seconds", "training s"},
    Column{"sample_seconds", "sample_seconds", "sampling s"},
    Column{"metric_seconds", "metric_seconds", "metrics s"},
};
constexpr std::size_t kMean = 0, kSd = 1, kPublished = 2, kDifference = 3;

double number(const Record& record, const char* name) {
  const RecordValue* value = record.find(name);
  if (!value) return kNan;
  if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(value);
  return real ? *real : kNan;
}

std::string text(const Record& record, const char* name) {
  const RecordValue* value = record.find(name);
  const auto* found = value ? std::get_if<std::string>(value) : nullptr;
  return found ? *found : std::string();
}

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return values.empty() ? kNan : sum / static_cast<double>(values.size());
}

double sd(const std::vector<double>& values) {
  if (values.size() < 2) return kNan;
  const double centre = mean(values);
  double squares = 0.0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::string csv_cell(double value) { return std::isnan(value) ? std::string() : number_text(value); }

std::string short_text(double value) {
  if (std::isnan(value)) return "";
  return std::fabs(value) < 1000 ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value);
}

std::string lower(std::string_view word) {
  std::string result(word);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result == "nre" ? "nre-b" : result;
}

/// Reads one anchor table.
class AnchorReader {
 public:
  AnchorReader(const std::string& file, const std::string& column, const BenchmarkPlan& plan)
      : file_(file), column_(column), plan_(plan) {}

  void read_into(Anchors& anchors) {
    const std::string content = read_file(file_, kMostAnchorBytes);
    io::CsvLines lines(content, file_);
    std::vector<std::string_view> cells;
    if (!lines.next(cells)) throw IoError(file_ + ": is empty; an anchor table has a header line and rows");
    const std::vector<std::string> header(cells.begin(), cells.end());
    const std::size_t task = find(header, {"task"}), algorithm = find(header, {"algorithm"});
    const std::size_t budget = find(header, {"budget", "num_simulations"});
    const std::size_t value = column_.empty() ? find(header, {"c2st_mean", "c2st"}) : find(header, {column_});
    while (lines.next(cells)) {
      if (cells.size() != header.size()) {
        throw IoError(fmt::format("{}: line {} has {} cells but the header has {}; mend the table", file_,
                                  lines.line(), cells.size(), header.size()));
      }
      const std::optional<double> rows = io::parse_number(cells[budget]);
      const std::string task_name(cells[task]), algorithm_name = lower(cells[algorithm]);
      if (!rows || !is_asked_for(task_name, algorithm_name, *rows)) continue;
      const std::optional<double> found = io::parse_number(cells[value]);
      if (!found) {
        throw IoError(fmt::format("{}: line {}: {} = {} is no number; mend the table", file_, lines.line(),
                                  header[value], quoted_excerpt(cells[value])));
      }
      const auto key = std::tuple(task_name, algorithm_name, static_cast<std::int64_t>(*rows));
      if (!anchors.emplace(key, *found).second) {
        throw ConfigError(
            fmt::format("{}: line {}: a second number for {} {} {:.0f}; leave one row per cell in the anchor "
                        "tables, with the "
                        "settings of this benchmark",
                        file_, lines.line(), task_name, algorithm_name, *rows));
      }
    }
  }

 private:
  std::size_t find(const std::vector<std::string>& header, const std::vector<std::string>& names) const {
    for (const std::string& name : names) {
      const auto found = std::find(header.begin(), header.end(), name);
      if (found != header.end()) return static_cast<std::size_t>(found - header.begin());
    }
    throw IoError(
        fmt::format("{}: has no column {} (its columns: {}); an anchor table needs task, algorithm, budget "
                    "and c2st_mean, c2st, or the column that --anchor-column names",
                    file_, fmt::join(names, " or "), fmt::join(header, ", ")));
  }

  bool is_asked_for(const std::string& task, const std::string& algorithm, double budget) const {
    const auto has = [](const auto& list, const auto& value) {
      return std::find(list.begin(), list.end(), value) != list.end();
    };
    return has(plan_.tasks, task) && has(plan_.algorithms, algorithm) &&
           std::any_of(plan_.budgets.begin(), plan_.budgets.end(),
                       [&](std::int64_t one) { return static_cast<double>(one) == budget; });
  }

  const std::string& file_;
  const std::string& column_;
  const BenchmarkPlan& plan_;
};

}  // namespace

Anchors read_anchors(std::span<const std::string> files, const std::string& column,
                     const BenchmarkPlan& plan) {
  if (files.empty() && !column.empty())
    throw UsageError("--anchor-column names a column but no table is given; add --anchors FILE");
  Anchors anchors;
  for (const std::string& file : files) AnchorReader(file, column, plan).read_into(anchors);
  return anchors;
}

BenchmarkTable::BenchmarkTable(const BenchmarkPlan& plan, std::span<const Record> cells, Anchors anchors)
    : anchors_(std::move(anchors)) {
  for (const std::int64_t budget : plan.budgets) {
    for (const std::string& task : plan.tasks) {
      for (const std::string& algorithm : plan.algorithms) add_row(task, algorithm, budget, cells);
    }
  }
}

void BenchmarkTable::add_row(const std::string& task, const std::string& algorithm, std::int64_t budget,
                             std::span<const Record> cells) {
  Row row{task, algorithm, budget, 0, 0, std::vector<double>(kColumns.size(), kNan)};
  std::vector<const Record*> usable;
  for (const Record& cell : cells) {
    if (text(cell, "task") != task || text(cell, "algorithm") != algorithm ||
        number(cell, "budget") != static_cast<double>(budget))
      continue;
    ++row.num_seeds;
    // Cells without a C2ST would turn the means into nan; they are counted instead.
    if (std::isnan(number(cell, "c2st_mean"))) {
      ++row.num_failed;
    } else {
      usable.push_back(&cell);
    }
  }
  for (std::size_t c = 0; c < kColumns.size(); ++c) {
    if (*kColumns[c].source == '\0') continue;
    std::vector<double> values;
    for (const Record* cell : usable) values.push_back(number(*cell, kColumns[c].source));
    row.values[c] = mean(values);
    if (c == kMean) row.values[kSd] = sd(values);
  }
  const auto published = anchors_.find(std::tuple(task, algorithm, budget));
  if (published != anchors_.end()) {
    row.values[kPublished] = published->second;
    row.values[kDifference] = row.values[kMean] - published->second;
  }
  rows_.push_back(std::move(row));
}

std::string BenchmarkTable::csv() const {
  std::string result = "task,algorithm,budget,num_seeds,num_failed";
  for (const Column& column : kColumns) result += fmt::format(",{}", column.name);
  result += "\n";
  for (const Row& row : rows_) {
    result +=
        fmt::format("{},{},{},{},{}", row.task, row.algorithm, row.budget, row.num_seeds, row.num_failed);
    for (const double value : row.values) result += "," + csv_cell(value);
    result += "\n";
  }
  return result;
}

std::vector<BenchmarkTable::Row> BenchmarkTable::averages() const {
  std::vector<Row> result;
  for (const Row& row : rows_) {
    const auto same = [&](const Row& other) {
      return other.algorithm == row.algorithm && other.budget == row.budget;
    };
    if (std::any_of(result.begin(), result.end(), same)) continue;
    std::vector<Row> all;
    std::copy_if(rows_.begin(), rows_.end(), std::back_inserter(all), same);
    if (all.size() < 2) continue;
    Row average{"average", row.algorithm, row.budget, 0, 0, std::vector<double>(kColumns.size(), kNan)};
    for (const std::size_t c : {kMean, kPublished, kDifference}) {
      std::vector<double> values;
      for (const Row& one : all) values.push_back(one.values[c]);
      average.values[c] = mean(values);  // nan, and so empty, when a task has none
    }
    result.push_back(std::move(average));
  }
  return result;
}

std::string BenchmarkTable::markdown() const {
  std::string result = "| task | algorithm | budget | seeds | failed |";
  std::string rule = "|---|---|---|---|---|";
  for (const Column& column : kColumns) {
    if (*column.markdown == '\0') continue;
    result += fmt::format(" {} |", column.markdown);
    rule += "---|";
  }
  result += "\n" + rule + "\n";
  std::vector<Row> all = rows_;
  for (Row& average : averages()) all.push_back(std::move(average));
  for (const Row& row : all) {
    const bool is_average = row.task == "average";
    result += fmt::format("| {} | {} | {} | {} | {} |", row.task, row.algorithm, row.budget,
                          is_average ? "" : std::to_string(row.num_seeds),
                          is_average ? "" : std::to_string(row.num_failed));
    for (std::size_t c = 0; c < kColumns.size(); ++c) {
      if (*kColumns[c].markdown != '\0') result += fmt::format(" {} |", short_text(row.values[c]));
    }
    result += "\n";
  }
  return result;
}

}  // namespace nrec
