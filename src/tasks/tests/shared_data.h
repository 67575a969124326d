#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nrec/tasks/benchmark_files.h"

// Test data kept beside the checkout; the folder can be named by the environment variable NREC_SHARED.
namespace nrec {

inline std::filesystem::path shared_folder() {
  const char* folder = std::getenv("NREC_SHARED");
  return folder != nullptr ? std::filesystem::path(folder)
                           : std::filesystem::path(NREC_SOURCE_DIR) / ".." / "shared";
}

// An observation of the benchmark, read once per program.
inline const BenchmarkObservation& benchmark_observation(const std::string& task, int number) {
  static std::map<std::pair<std::string, int>, BenchmarkObservation> read_before;
  const auto [found, is_new] = read_before.try_emplace({task, number});
  if (is_new) found->second = read_benchmark_observation(shared_folder() / "sbibm", task, number);
  return found->second;
}

// Names test instances after their task.
inline std::string task_of(const testing::TestParamInfo<std::string>& instance) { return instance.param; }

// Cells of a text table without its header; commas inside double quotes do not separate.
inline std::vector<std::vector<std::string>> text_table(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"')
        quoted = !quoted;
      else if (c == ',' && !quoted)
        cells.emplace_back();
      else
        cells.back() += c;
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

}  // namespace nrec

#define NREC_NEEDS_SHARED(path)                                   \
  if (!std::filesystem::exists(::nrec::shared_folder() / (path))) \
  GTEST_SKIP() << "no " << (::nrec::shared_folder() / (path))     \
               << ": put the shared data beside the checkout or set NREC_SHARED"
