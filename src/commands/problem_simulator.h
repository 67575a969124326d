#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nrec/commands/problem.h"
#include "nrec/core/record.h"
#include "nrec/simulation/external_simulator.h"
#include "nrec/tasks/task.h"

namespace nrec {

/// The simulator of a problem behind one face: an external one or a built-in task.
class ProblemSimulator {
 public:
  /// Errors   as those of ExternalSimulator; ConfigError: unknown task
  ProblemSimulator(const Problem& problem, const Prior& prior, std::uint64_t seed);

  std::string name() const { return task_ ? "task " + task_->name() : external_->name(); }
  const std::string& hash() const { return hash_; }

  /// Learns the shape of x, from what an earlier run left if it fits, else by trying. Errors   of the pre-flight
  void prepare(const std::optional<Record>& stored, const Prior& prior, std::uint64_t seed,
               const RunContext& run, std::uint64_t num_rows, int workers);

  /// After prepare().
  std::unique_ptr<RowRunner> make_runner(std::uint64_t seed) {
    return task_ ? make_row_runner(task_->simulator(), seed) : external_->make_runner();
  }
  /// Empty when a stop was requested before it was known.
  const std::vector<std::size_t>& x_shape() const { return shape_; }
  std::size_t dim_x() const;
  std::size_t rows_per_call() const;
  /// What prepare() found, for campaign.json.
  const Record& record() const { return record_; }

 private:
  void take(const Record& stored);

  std::unique_ptr<Task> task_;
  ExternalSimulatorOptions external_options_;
  std::vector<std::string> names_;
  std::optional<ExternalSimulator> external_;
  std::string hash_;
  std::vector<std::size_t> shape_;
  Record record_;
};

/// campaign.json of an earlier run, or nullopt when there is none that makes sense: then everything is found out anew.
std::optional<Record> stored_settings(const std::filesystem::path& folder);

/// Rows of the problem's simulator that run side by side.
int worker_count(const Problem& problem, const RunContext& run);

}  // namespace nrec
