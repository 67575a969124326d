#include "commands/benchmark_cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "commands/benchmark_metrics.h"
#include "commands/results.h"
#include "nrec/core/error.h"
#include "nrec/core/stop.h"
#include "nrec/inference/sample_many.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"
#include "nrec/kernels/dispatch.h"
#include "nrec/simulation/simulator.h"
#include "nrec/training/train.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

std::vector<std::int64_t> observation_numbers(const BenchmarkTask& task) {
  std::vector<std::int64_t> numbers;
  for (const BenchmarkReference& reference : task.references) numbers.push_back(reference.number);
  return numbers;
}

/// Text by which values are compared: that of the file, where 1.0 may have become 1.
std::string value_text(const RecordValue& value) {
  Record record;
  record.set("value", value);
  Record again = record_from_json(record_to_json(record, -1), "value");
  return record_to_json(again, -1).substr(std::size("{\"value\":") - 1);
}

/// What a file says of an option that did not exist when it was written. Only right for options whose default is what the program did
/// before it had them: a default that changes is that of options which every file has.
std::optional<RecordValue> default_value(const std::string& name) {
  NetworkOptions network;
  TrainingOptions training;
  SamplingOptions sampling;
  OptionTable table;
  describe(table, network);
  describe(table, training);
  describe(table, sampling);
  Record record;
  add_options(record, table);
  record.set("component_per_call", BenchmarkOptions{}.component_per_call);
  const RecordValue* value = record.find(name);
  return value ? std::optional<RecordValue>(*value) : std::nullopt;
}

void add_training_facts(Record& record, const TrainingSummary& training, double seconds, bool resumed) {
  record.set("training_status", training_status_name(training.status));
  record.set("training_message", training.message);
  record.set("training_warnings", RecordValue(training.warnings));
  record.set("num_epochs", training.num_epochs);
  record.set("best_epoch", training.best_epoch);
  record.set("best_validation_loss", training.best_validation_loss);
  record.set("best_validation_loss_se", training.best_validation_loss_se);
  record.set("num_training_rows", training.num_training_rows);
  record.set("num_validation_rows", training.num_validation_rows);
  record.set("batch_size", training.batch_size);
  record.set("train_seconds", seconds);
  record.set("train_resumed", resumed);
}

SimulationSet simulate_cell(const Task& task, const BenchmarkCell& cell, const RunContext& run,
                            Record& record) {
  SimulationSet set = simulate_from_prior(task.prior(), task.simulator(),
                                          static_cast<std::size_t>(cell.budget), run.seed, run.pool);
  check_simulations(set);
  set = without_failures(std::move(set), FailureRule::drop);
  record.set("num_failed_simulations", set.num_dropped);
  return set;
}

void add_draws(Record& record, const std::vector<PosteriorDraws>& draws) {
  std::vector<std::string> samplers, statuses, different;
  std::vector<std::int64_t> counts;
  for (const PosteriorDraws& one : draws) {
    samplers.push_back(one.method);
    statuses.emplace_back(sampling_status_name(one.status));
    counts.push_back(static_cast<std::int64_t>(one.size()));
    if (std::ranges::find(different, one.method) == different.end()) different.push_back(one.method);
  }
  record.set("sampler", fmt::format("{}", fmt::join(different, ", ")));
  record.set("samplers", RecordValue(samplers));
  record.set("sampling_status", RecordValue(statuses));
  record.set("num_draws", RecordValue(counts));
}

}  // namespace

Record cell_identity(const BenchmarkOptions& options, const BenchmarkCell& cell, const BenchmarkTask& task,
                     const RunContext& run) {
  Record record;
  record.set("schema_version", Record::kSchemaVersion);
  record.set("command", "benchmark");
  record.set("nrec_version", nrec_version());
  record.set("isa", resolve_isa(run.isa));
  record.set("precision", precision_of(run.isa));
  record.set("task", cell.task);
  record.set("algorithm", cell.algorithm);
  record.set("budget", RecordValue(cell.budget));
  record.set("seed", RecordValue(static_cast<std::int64_t>(cell.seed)));
  record.set("settings", options.settings);
  record.set("source", options.sbibm.empty() ? "nrec" : "sbibm");
  record.set("observations", RecordValue(observation_numbers(task)));
  record.set("observations_hash", task.hash);
  record.set("component_per_call", options.component_per_call && cell.task == kMixtureTask);
  record.merge("", cell_settings(options, cell));
  return record;
}

std::optional<Record> stored_cell(const fs::path& path, const Record& identity) {
  std::optional<Record> stored = readable_record(path);
  if (!stored) return std::nullopt;
  for (const auto& [name, value] : identity.entries()) {
    const RecordValue* there = stored->find(name);
    const std::optional<RecordValue> old = there ? *there : default_value(name);
    const std::string was = old ? value_text(*old) : "nothing}";
    const std::string is = value_text(value);
    if (was == is) continue;
    throw ConfigError(
        fmt::format("{}: this cell was made with {} = {} but now it is {}; choose another --out, or replace "
                    "the cells that are "
                    "asked for by --overwrite",
                    path.string(), name, was.substr(0, was.size() - 1), is.substr(0, is.size() - 1)));
  }
  return stored;
}

std::optional<RatioEstimator> train_cell(const BenchmarkOptions& options, const BenchmarkCell& cell,
                                         const CellFiles& files, const RunContext& run, Record& record) {
  const std::unique_ptr<Task> task = cell_task(options, cell);
  const Stopwatch simulating;
  const SimulationSet simulations = simulate_cell(*task, cell, run, record);
  record.set("simulate_seconds", simulating.seconds());
  const Stopwatch training;
  const bool resumed = fs::exists(files.checkpoint);
  TrainingResult trained = train(task->prior(), simulations, options.network, cell_training(options, cell),
                                 run, {.path = files.checkpoint, .resume = true}, &task->simulator());
  add_training_facts(record, trained.summary, training.seconds(), resumed);
  if (run.stop_requested()) return std::nullopt;
  if (trained.estimator) save_estimator(*trained.estimator, files.estimator);
  return std::move(trained.estimator);
}

bool measure_cell(const RatioEstimator& estimator, const SamplingOptions& sampling, const BenchmarkTask& task,
                  const RunContext& run, Record& record) {
  const Stopwatch watch;
  const std::vector<PosteriorDraws> draws = sample_many(estimator, task.x_o, sampling, run);
  if (run.stop_requested()) return false;
  record.set("sample_seconds", watch.seconds());
  add_draws(record, draws);
  const Stopwatch metric_watch;
  std::vector<ObservationMetrics> metrics;
  for (std::size_t i = 0; i < draws.size(); ++i) {
    metrics.push_back(measure(task, i, draws[i], estimator, run));
    if (run.stop_requested()) return false;
  }
  record.set("metric_seconds", metric_watch.seconds());
  add_metrics(record, metrics);
  return true;
}

std::optional<Record> run_cell(const BenchmarkOptions& options, const BenchmarkCell& cell,
                               const BenchmarkTask& task, const CellFiles& files, const RunContext& run) {
  const Stopwatch watch;
  Record record = cell_identity(options, cell, task, run);
  record.set("status", "done");
  const std::optional<RatioEstimator> estimator = train_cell(options, cell, files, run, record);
  if (run.stop_requested()) return std::nullopt;
  if (!estimator) {
    record.set("status", "failed");
    add_metrics(record, std::vector<ObservationMetrics>(task.references.size()));
  } else if (!measure_cell(*estimator, options.sampling, task, run, record)) {
    return std::nullopt;
  }
  record.set("threads", run.pool.num_threads());
  record.set("seconds", watch.seconds());
  return record;
}

}  // namespace nrec
