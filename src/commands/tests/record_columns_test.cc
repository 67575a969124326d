#include "commands/record_columns.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace nrec {
namespace {

constexpr std::array<std::string_view, 1> kLists = {"r_hat"};

std::vector<Record> three() {
  std::vector<Record> rows(3);
  rows[0].set("status", "complete");
  rows[0].set("count", 7);
  rows[0].set("seconds", 0.5);
  rows[0].set("r_hat", std::vector<double>{1.0, 1.1});
  rows[1].set("status", "stopped");
  rows[2].set("status", "complete");
  rows[2].set("seconds", 1.5);
  rows[2].set("is_done", true);
  return rows;
}

TEST(RecordColumns, HoldsEveryNameWithOneValueARow) {
  const Record columns = record_columns(three());
  EXPECT_EQ(std::get<std::vector<std::string>>(*columns.find("status")),
            (std::vector<std::string>{"complete", "stopped", "complete"}));
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(*columns.find("count")),
            (std::vector<std::int64_t>{7, -1, -1}));
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(*columns.find("is_done")),
            (std::vector<std::int64_t>{-1, -1, 1}));
  EXPECT_TRUE(std::isnan(std::get<std::vector<double>>(*columns.find("seconds"))[1]));
  EXPECT_EQ(std::get<std::vector<double>>(*columns.find("r_hat")).size(), 6u);
}

TEST(RecordColumns, GivesTheRowsBack) {
  const std::vector<Record> rows = three();
  const Record columns = record_columns(rows);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(record_row(columns, i, 3, kLists).entries(), rows[i].entries()) << i;
  const Record last = record_row(columns, 2, 3, kLists);
  EXPECT_EQ(std::get<double>(*last.find("seconds")), 1.5);
  EXPECT_EQ(last.find("count"), nullptr);
  EXPECT_EQ(last.find("r_hat"), nullptr);
}

TEST(RecordColumns, KeepsAListOfOneAList) {
  std::vector<Record> rows(2);
  rows[0].set("r_hat", std::vector<double>{1.0});
  rows[0].set("seconds", 2.0);
  rows[1].set("r_hat", std::vector<double>{1.5});
  const Record row = record_row(record_columns(rows), 1, 2, kLists);
  EXPECT_EQ(std::get<std::vector<double>>(*row.find("r_hat")), std::vector<double>{1.5});
  EXPECT_EQ(std::get<double>(*record_row(record_columns(rows), 0, 2, kLists).find("seconds")), 2.0);
}

}  // namespace
}  // namespace nrec
