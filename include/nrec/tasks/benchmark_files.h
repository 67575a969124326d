#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "nrec/core/array.h"

namespace nrec {

/// Observations of every task of the benchmark are numbered 1 .. kNumBenchmarkObservations.
inline constexpr int kNumBenchmarkObservations = 10;

/// One of the benchmark's observations with its answer.
struct BenchmarkObservation {
  int number = 0;                       // from the folder's name
  std::uint64_t seed = 0;               // what the observation was made with, for the record
  std::vector<double> x_o;              // [M]
  std::vector<double> true_parameters;  // [D]: the theta that made x_o
  Matrix<double> reference_posterior;   // [10000, D]
};

/// Reads observation `number` of a task from the benchmark's folder layout,
/// dir/tasks/<task>/files/num_observation_<number>/.
///
/// Eight folders serve ten tasks: bernoulli_glm_raw is kept in bernoulli_glm (observation_raw.csv) and slcp_distractors
/// in slcp (observation_distractors.csv); each pair shares true parameters and reference samples. The number comes from
/// the folder's name: the one inside observation_seed.csv is wrong for five observations of lotka_volterra.
///
/// Errors   ConfigError: unknown task; DomainError: number outside 1..10; IoError: missing or damaged file, more or
///          fewer rows or columns than the task has, a value that is not finite
/// Numerics the files hold float32 in shortest decimals; values are the float64 nearest to these decimals
/// Cost     dominated by inflating and parsing 10 000 rows, some 10 ms
BenchmarkObservation read_benchmark_observation(const std::filesystem::path& dir, std::string_view task_name,
                                                int number);

}  // namespace nrec
