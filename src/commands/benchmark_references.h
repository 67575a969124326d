#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/benchmark_plan.h"
#include "nrec/core/array.h"
#include "nrec/tasks/task.h"

namespace nrec {

/// An observation with its answer.
struct BenchmarkReference {
  int number = 0;
  std::vector<double> x_o;
  std::vector<double> true_parameters;
  Matrix<double> theta;  // [n, D] reference posterior
  std::string method;    // "sbibm", "exact" or "rejection"
  double error = 0.0;    // of ReferencePosterior; nan where nobody has stated one
  double log_evidence = 0.0, log_evidence_se = 0.0;
};

/// A task with the observations of a benchmark.
struct BenchmarkTask {
  std::unique_ptr<Task> task;
  std::vector<BenchmarkReference> references;
  Matrix<double> x_o;  // [observations, M]: all of them
  std::string hash;    // of observations and reference posteriors
};

/// Reads the observations from the published benchmark's folder, or makes them and their reference posteriors; what is made
/// is kept in `folder` and read from there the next time. Nothing when a stop was requested or the time was over.
///
/// Errors   those of read_benchmark_observation; DomainError: no observation with a posterior that can be drawn
std::optional<std::vector<BenchmarkTask>> benchmark_tasks(const BenchmarkOptions& options,
                                                          const BenchmarkPlan& plan,
                                                          const std::filesystem::path& folder,
                                                          const RunContext& run);

}  // namespace nrec
