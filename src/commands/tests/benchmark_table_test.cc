#include "commands/benchmark_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace nrec {
namespace {

Record cell(const std::string& task, std::int64_t budget, std::int64_t seed, double c2st) {
  Record record;
  record.set("task", task);
  record.set("algorithm", "nre-c");
  record.set("budget", RecordValue(budget));
  record.set("seed", RecordValue(seed));
  record.set("c2st_mean", c2st);
  record.set("mmd2_mean", 10.0 * c2st);
  record.set("train_seconds", 2.0);
  return record;
}

BenchmarkPlan plan(std::vector<std::string> tasks) {
  return {std::move(tasks), {"nre-c"}, {1000}, {1, 2, 3}, {1}};
}

/// Cells of line `row` of a table.
std::vector<std::string> line(const std::string& csv, std::size_t row) {
  std::istringstream lines(csv);
  std::string text;
  for (std::size_t i = 0; i <= row; ++i) std::getline(lines, text);
  std::vector<std::string> cells;
  std::istringstream cells_of(text + ",");
  for (std::string word; std::getline(cells_of, word, ',');) cells.push_back(word);
  return cells;
}

TEST(BenchmarkTable, HasMeansAndSdsOverSeeds) {
  const std::vector<Record> cells = {cell("slcp", 1000, 1, 0.5), cell("slcp", 1000, 2, 0.75),
                                     cell("slcp", 1000, 3, 1.0), cell("slcp", 10000, 1, 0.9)};
  const Anchors anchors = {{{"slcp", "nre-c", 1000}, 0.5}};
  const BenchmarkTable table(plan({"slcp"}), cells, anchors);
  const std::vector<std::string> header = line(table.csv(), 0), row = line(table.csv(), 1);
  ASSERT_EQ(header.size(), row.size());
  EXPECT_EQ(std::vector<std::string>(row.begin(), row.begin() + 11),
            (std::vector<std::string>{"slcp", "nre-c", "1000", "3", "0", "0.75", "0.25", "0.5", "0.25", "",
                                      "7.5"}));
  EXPECT_EQ(header[5], "c2st_mean");
  EXPECT_EQ(header[header.size() - 3], "train_seconds");
  EXPECT_EQ(row[row.size() - 3], "2");
}

TEST(BenchmarkTable, CountsFailuresAndLeavesThemOutOfMeans) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Record> cells = {cell("slcp", 1000, 1, 0.5), cell("slcp", 1000, 2, nan)};
  const std::vector<std::string> row = line(BenchmarkTable(plan({"slcp"}), cells, {}).csv(), 1);
  EXPECT_EQ(std::vector<std::string>(row.begin(), row.begin() + 9),
            (std::vector<std::string>{"slcp", "nre-c", "1000", "2", "1", "0.5", "", "", ""}));
}

TEST(BenchmarkTable, AveragesOverTasksOnlyWhereAllHaveNumbers) {
  const std::vector<Record> both = {cell("slcp", 1000, 1, 0.5), cell("sir", 1000, 1, 0.75)};
  const Anchors anchors = {{{"slcp", "nre-c", 1000}, 0.5}};
  const std::string markdown = BenchmarkTable(plan({"slcp", "sir"}), both, anchors).markdown();
  EXPECT_NE(markdown.find("| average | nre-c | 1000 |  |  | 0.625 |  |  |  |"), std::string::npos)
      << markdown;
  const std::string one = BenchmarkTable(plan({"slcp", "sir"}), {both.data(), 1}, {}).markdown();
  EXPECT_NE(one.find("| average | nre-c | 1000 |  |  |  |"), std::string::npos) << one;
  EXPECT_NE(one.find("| sir | nre-c | 1000 | 0 | 0 |  |"), std::string::npos) << one;
  EXPECT_EQ(BenchmarkTable(plan({"slcp"}), both, {}).markdown().find("average"), std::string::npos);
}

}  // namespace
}  // namespace nrec
