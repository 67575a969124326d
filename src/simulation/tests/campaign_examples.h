#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "io/tests/temporary_folder.h"
#include "nrec/core/error.h"
#include "nrec/simulation/campaign_store.h"

namespace nrec::simulation {

inline CampaignIdentity example_identity() {
  return {.seed = 7,
          .parameter_names = {"mass", "rate"},
          .prior = {"mass ~ uniform(0, 1)", "rate ~ normal(0, 2)"},
          .simulator = "./decay --mass {mass}",
          .simulator_hash = "fnv1a64:0000000000000001",
          .x_shape = {3}};
}

inline std::vector<double> example_theta(std::uint64_t row) {
  const auto number = static_cast<double>(row);
  return {number / 3.0, -number};
}

// Every seventh row fails, in one of two ways.
inline RowResult example_result(std::uint64_t row) {
  RowResult result;
  result.row = row;
  result.seconds = 0.5;
  if (row % 7 == 3) {
    result.status = row % 2 == 0 ? RowStatus::failed : RowStatus::timed_out;
    result.reason = row % 2 == 0 ? "exit code 3" : "longer than 10 s";
    result.messages = "row " + std::to_string(row) + " went wrong";
    result.attempts = 2;
  } else {
    const auto number = static_cast<double>(row);
    result.x = {std::sqrt(number), number * 1e-300, 1.0 / (number + 1.0)};
  }
  return result;
}

// With so much text in failed rows that few of them fill the log, which is then moved into the database.
inline RowResult bulky_result(std::uint64_t row) {
  RowResult result = example_result(row);
  if (result.status != RowStatus::ok) result.messages.assign(300'000, 'm');
  return result;
}

inline void add_rows(CampaignWriter& writer, std::uint64_t first, std::uint64_t last,
                     std::uint64_t step = 1) {
  for (std::uint64_t row = first; row < last; row += step)
    writer.add(example_theta(row), example_result(row));
}

// A folder's database with the rows of a shard below `num_rows`.
inline void make_shard(const std::filesystem::path& folder, Shard shard, std::uint64_t num_rows,
                       const CampaignIdentity& identity = example_identity()) {
  CampaignWriter writer(folder, identity, shard, ChangedCampaign::accept);
  add_rows(writer, shard.index, num_rows, shard.count);
}

// Whether row `at` of a set is the example row `row`, bit for bit.
inline bool is_example_row(const SimulationSet& set, std::size_t at, std::uint64_t row) {
  const RowResult expected = example_result(row);
  const std::vector<double> theta = example_theta(row);
  if (!std::equal(theta.begin(), theta.end(), set.theta.row(at).begin())) return false;
  if (set.status[at] != expected.status) return false;
  const auto x = set.x.row(at);
  if (expected.x.empty()) return std::isnan(x[0]) && std::isnan(x[1]) && std::isnan(x[2]);
  return std::equal(expected.x.begin(), expected.x.end(), x.begin());
}

// A connection of our own, past the store.
class RawDatabase {
 public:
  explicit RawDatabase(const std::filesystem::path& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &handle_), SQLITE_OK);
  }
  ~RawDatabase() { sqlite3_close(handle_); }
  RawDatabase(const RawDatabase&) = delete;
  RawDatabase& operator=(const RawDatabase&) = delete;

  // First column of the last answer.
  std::string run(const std::string& sql) {
    std::string answer;
    const auto keep = [](void* to, int, char** values, char**) {
      *static_cast<std::string*>(to) = values[0] == nullptr ? "NULL" : values[0];
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(handle_, sql.c_str(), keep, &answer, nullptr), SQLITE_OK)
        << sqlite3_errmsg(handle_);
    return answer;
  }

 private:
  sqlite3* handle_ = nullptr;
};

// Names of what is in a folder, sorted, separated by spaces.
inline std::string names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

}  // namespace nrec::simulation
