#include "nrec/tasks/benchmark_files.h"

#include <cmath>
#include <string>
#include <utility>

#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/io/csv.h"
#include "nrec/tasks/task.h"

namespace nrec {
namespace {

constexpr std::size_t kReferenceRows = 10'000;
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;  // ten times the largest file of the benchmark

// Where the benchmark keeps a task: two tasks live in the folder of another, under a file name of their own.
struct Place {
  std::string folder;
  std::string observation_file;
};

Place place_of(std::string_view task_name) {
  if (task_name == "bernoulli_glm_raw") return {"bernoulli_glm", "observation_raw.csv"};
  if (task_name == "slcp_distractors") return {"slcp", "observation_distractors.csv"};
  return {std::string(task_name), "observation.csv"};
}

Matrix<double> read_table(const std::filesystem::path& path, std::size_t rows, std::size_t cols) {
  Matrix<double> values = read_csv(path, kMostBytes).values;
  if (values.rows() != rows || values.cols() != cols) {
    throw IoError(path.string() + ": holds " + std::to_string(values.rows()) + " rows of " +
                  std::to_string(values.cols()) + " numbers but the benchmark has " + std::to_string(rows) +
                  " rows of " + std::to_string(cols) + " there; fetch the file again");
  }
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < cols; ++j) {
      if (std::isfinite(values(i, j))) continue;
      throw IoError(path.string() + ": row " + std::to_string(i + 1) + ", column " + std::to_string(j + 1) +
                    " = " + number_text(values(i, j)) +
                    "; the benchmark's numbers are finite: fetch the file again");
    }
  }
  return values;
}

}  // namespace

BenchmarkObservation read_benchmark_observation(const std::filesystem::path& dir, std::string_view task_name,
                                                int number) {
  const std::unique_ptr<Task> task = make_task(task_name);
  if (number < 1 || number > kNumBenchmarkObservations) {
    throw DomainError("observation number = " + std::to_string(number) + " of task " +
                      std::string(task_name) +
                      " is outside 1..10; the benchmark has ten observations per task");
  }
  const Place place = place_of(task_name);
  const std::filesystem::path folder =
      dir / "tasks" / place.folder / "files" / ("num_observation_" + std::to_string(number));

  BenchmarkObservation observation;
  observation.number = number;
  observation.x_o = std::move(read_table(folder / place.observation_file, 1, task->dim_x()).values());
  observation.true_parameters =
      std::move(read_table(folder / "true_parameters.csv", 1, task->dim_theta()).values());
  // The second column of this file is not read: see the header.
  const double seed = read_table(folder / "observation_seed.csv", 1, 2)(0, 0);
  if (!(seed >= 0.0 && seed < 0x1p53 && seed == std::floor(seed))) {
    throw IoError((folder / "observation_seed.csv").string() + ": observation_seed = " + number_text(seed) +
                  " is not a whole number >= 0; fetch the file again");
  }
  observation.seed = static_cast<std::uint64_t>(seed);
  observation.reference_posterior =
      read_table(folder / "reference_posterior_samples.csv.bz2", kReferenceRows, task->dim_theta());
  return observation;
}

}  // namespace nrec
