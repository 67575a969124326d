#include "commands/benchmark_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "commands/flag_lists.h"
#include "commands/results.h"
#include "nrec/core/error.h"
#include "nrec/priors/prior.h"
#include "nrec/simulation/simulator.h"
#include "nrec/tasks/benchmark_files.h"
#include "nrec/tasks/task.h"
#include "nrec/training/train.h"

namespace nrec {

namespace {

const std::vector<std::string> kAlgorithms = {"nre-a", "nre-b", "nre-c"};
// Sampling and metrics cost about as much as training on this many simulations; for the time left only.
constexpr double kFixedCost = 5000.0;
constexpr int kPaperLargestBatch = 10000;
constexpr std::int64_t kMostCheckedRows = 200'000;  // more rows than any batch

template <class T>
std::vector<T> as(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

void describe(OptionTable& table, BenchmarkOptions& options) {
  table.add("", "tasks", &options.tasks, "tasks (docs/methods/tasks.md), or all");
  table.add("", "algorithms", &options.algorithms, "nre-a, nre-b, nre-c");
  table.add("", "budgets", &options.budgets, "simulations per network: 1000,1e4");
  table.add("", "seeds", &options.seeds, "one network per seed: 1-5 or 1,7");
  table.add("", "observations", &options.observations, "observations of every task, by number");
  table.add(
      "", "settings", &options.settings, {"default", "published", "sbibm"},
      "what network, training and sampling are where no flag says otherwise: nrec's defaults, the published "
      "setting of NRE-C, or that of NRE in the published benchmark");
  table.add("", "sbibm", &options.sbibm, {},
            "folder of the published benchmark (it holds tasks/): its observations and reference posteriors; "
            "without it nrec makes its own");
  table.add(
      "", "anchors", &options.anchors,
      "tables (.csv) with published numbers to stand beside: columns task, algorithm, budget and a value");
  table.add("", "anchor_column", &options.anchor_column, {},
            "column of the anchors that holds the value; empty: c2st_mean, else c2st");
  table.add("", "component_per_call", &options.component_per_call,
            "gaussian_mixture: simulate one component of the mixture for each network, as the published "
            "benchmark did before its version 1.1.0, instead of one per row");
  table.add("", "parallel", &options.parallel, {.low = 0, .high = 1024},
            "cells side by side; 0: as many as threads and memory allow");
  describe(table, options.network);
  describe(table, options.training);
  describe(table, options.sampling);
}

void use_settings(BenchmarkOptions& options) {
  options.network = {};
  options.training = {};
  options.sampling = {};
  // Draws must not depend on how busy a machine is; max_evaluations still ends what would not.
  options.sampling.max_seconds = std::numeric_limits<double>::infinity();
  options.batch_of_validation_size = options.settings == "sbibm";
  if (options.settings == "default") return;
  use_published_settings(options.network, options.training);
  if (options.settings == "published") return;
  options.network = {.hidden_features = 50, .num_blocks = 2, .norm = "none"};
  options.training.num_classes = 10;
  options.training.max_num_epochs = std::numeric_limits<int>::max();
  options.training.stop_after_epochs = 20;
  options.training.contrast = "independent";
  options.sampling.method = "slice";
}

void apply_benchmark_flags(std::span<const OptionOverride> flags, const OptionTable& table,
                           BenchmarkOptions& options) {
  for (const OptionOverride& flag : flags) {
    if (flag.section.empty() && flag.name == "settings") apply(flag, table);
  }
  use_settings(options);
  for (const OptionOverride& flag : flags) {
    if (flag.section == "training" && flag.name == "loss")
      throw UsageError(
          "--loss: the algorithms of a benchmark are its losses; use --algorithms nre-a,nre-b,nre-c");
    if (flag.section == "sampling" && flag.name == "fix")
      throw UsageError("--fix: a benchmark compares whole posteriors; leave it out");
    apply(flag, table);
    if (flag.section == "training" && flag.name == "training_batch_size")
      options.batch_of_validation_size = false;
  }
}

std::string BenchmarkCell::name() const {
  return fmt::format("{}-{}-{}-seed{}", task, algorithm, budget, seed);
}

std::string BenchmarkCell::text() const {
  return fmt::format("{} {} {} seed {}", task, algorithm, budget, seed);
}

std::vector<BenchmarkCell> BenchmarkPlan::cells() const {
  std::vector<BenchmarkCell> list;
  for (const std::int64_t budget : budgets) {
    for (const std::string& task : tasks) {
      for (const std::string& algorithm : algorithms) {
        for (const std::uint64_t seed : seeds) list.push_back({task, algorithm, budget, seed});
      }
    }
  }
  return list;
}

BenchmarkPlan benchmark_plan(const BenchmarkOptions& options) {
  const double most_observations = options.sbibm.empty() ? 1e6 : kNumBenchmarkObservations;
  return {task_list(options.tasks), known_words("--algorithms", options.algorithms, kAlgorithms),
          whole_numbers("--budgets", options.budgets, 10, 1e9),
          as<std::uint64_t>(whole_numbers("--seeds", options.seeds, 0, 9e15)),
          as<int>(whole_numbers("--observations", options.observations, 1, most_observations))};
}

std::unique_ptr<Task> cell_task(const BenchmarkOptions& options, const BenchmarkCell& cell) {
  return make_task(cell.task, {.component_per_call = options.component_per_call && cell.task == kMixtureTask,
                               .component_seed = cell.seed});
}

TrainingOptions cell_training(const BenchmarkOptions& options, const BenchmarkCell& cell) {
  TrainingOptions training = options.training;
  training.loss = cell.algorithm;
  if (options.batch_of_validation_size) {
    const std::size_t rows =
        validation_rows(static_cast<std::size_t>(cell.budget), training.validation_fraction, 0).size();
    training.training_batch_size = static_cast<int>(std::clamp<std::size_t>(rows, 1, kPaperLargestBatch));
  }
  return settled_options(training, static_cast<std::size_t>(cell.budget));
}

Record cell_settings(const BenchmarkOptions& options, const BenchmarkCell& cell) {
  Record record;
  NetworkOptions network = options.network;
  TrainingOptions training = cell_training(options, cell);
  SamplingOptions sampling = options.sampling;
  OptionTable table;
  describe(table, network);
  describe(table, training);
  describe(table, sampling);
  add_options(record, table);
  return record;
}

namespace {

/// Rows beyond which nothing is refused: more than any batch, and enough validation rows for information_thetas.
std::int64_t most_checked_rows(const TrainingOptions& training) {
  const double wanted = (training.information_thetas + 2) / training.validation_fraction;
  return std::max(kMostCheckedRows, static_cast<std::int64_t>(std::min(wanted, 1e9)) + 1);
}

}  // namespace

void check_cells(const BenchmarkOptions& options, const BenchmarkPlan& plan, const RunContext& run) {
  // A training that is told to stop before its first step checks its arguments and does nothing else. The simulations
  // matter by their number alone.
  StopRequest at_once;
  at_once.request(1);
  const RunContext silent = {.pool = run.pool, .isa = run.isa, .stop = &at_once};
  const Prior prior = Prior::from_terms({{{"theta"}, "normal", {{"mean", {0.0}}, {"sd", {1.0}}}}});
  const FunctionSimulator copy(
      "copy", 1, 1,
      [](std::span<const double> theta, RandomStream&, std::span<double> x) { x[0] = theta[0]; });
  for (const std::int64_t budget : plan.budgets) {
    SimulationSet set;
    const auto rows = static_cast<std::size_t>(std::min(budget, most_checked_rows(options.training)));
    set.theta = Matrix<double>(rows, 1);
    prior.sample(1, Stream::check, 0, set.theta);
    set.x = set.theta;
    for (const std::string& algorithm : plan.algorithms) {
      const TrainingOptions training = cell_training(options, {"", algorithm, budget, 0});
      try {
        train(prior, set, options.network, training, silent, {}, &copy);
      } catch (const ShapeError& error) {
        throw ShapeError(fmt::format("{} with {} simulations: {}", algorithm, budget, error.what()));
      }
    }
  }
}

namespace {

/// Memory that a cell needs at its worst, bytes.
std::uint64_t cell_memory(const BenchmarkOptions& options, const BenchmarkCell& cell) {
  constexpr std::uint64_t kBase = 150u << 20;  // draws, classifiers, distances, buffers
  const std::unique_ptr<Task> task = make_task(cell.task);
  const TrainingOptions training = cell_training(options, cell);
  const auto columns = static_cast<std::uint64_t>(task->dim_theta() + task->dim_x());
  // Simulations in double, standardised in float, and copies of both while they are prepared.
  std::uint64_t bytes = kBase + static_cast<std::uint64_t>(cell.budget) * columns * 28;
  if (options.network.norm == "batch") {  // activations of all pairs of a step
    const auto batch =
        static_cast<std::uint64_t>(std::min<std::int64_t>(training.training_batch_size, cell.budget));
    const std::uint64_t pairs = batch * static_cast<std::uint64_t>(training.num_classes + 1);
    const auto layers = static_cast<std::uint64_t>(2 * options.network.num_blocks + 3);
    bytes += pairs * static_cast<std::uint64_t>(options.network.hidden_features) * layers * 4;
  }
  return bytes;
}

}  // namespace

ScheduledCell scheduled_cell(const BenchmarkOptions& options, const BenchmarkCell& cell) {
  return {cell.text(), cell.seed, kFixedCost + static_cast<double>(cell.budget), cell_memory(options, cell)};
}

}  // namespace nrec
