#include "experiments/experiment_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "commands/benchmark_cell.h"
#include "commands/results.h"
#include "nrec/core/error.h"
#include "nrec/core/stop.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"
#include "nrec/kernels/dispatch.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

std::string short_hash(const Record& record) {
  const std::string hash = content_hash(record_to_json(record, -1));
  return hash.substr(hash.find(':') + 1);
}

/// One call of run_experiment_cells().
class CellsRun {
 public:
  CellsRun(const ExperimentPlan& plan, const ExperimentOptions& options, fs::path folder,
           const RunContext& run)
      : plan_(plan), options_(options), folder_(std::move(folder)), run_(run) {}

  CellResults results() {
    CellResults results;
    const Stopwatch watch;
    std::optional<std::vector<BenchmarkTask>> tasks = prepare_tasks();
    if (!tasks) {
      results.status = run_.stop_requested() ? ScheduleStatus::stopped : ScheduleStatus::budget_spent;
      return results;
    }
    tasks_ = std::move(*tasks);
    for (const char* name : {"networks", "measured", "running"}) fs::create_directories(folder_ / name);
    std::vector<std::size_t> left;
    std::vector<ScheduledCell> scheduled;
    for (std::size_t i = 0; i < plan_.cells.size(); ++i) {
      if (is_done(plan_.cells[i])) continue;
      warn_of_damage(plan_.cells[i]);
      left.push_back(i);
      scheduled.push_back(scheduled_cell(plan_.cells[i].options, plan_.cells[i].cell));
      scheduled.back().text = plan_.cells[i].text();
      scheduled.back().cost = cost(plan_.cells[i]);
    }
    if (left.size() < plan_.cells.size())
      run_.log.info(fmt::format("{} of {} networks are done already", plan_.cells.size() - left.size(),
                                plan_.cells.size()));
    RunContext rest = run_;
    rest.time_limit = run_.time_limit - watch.seconds();
    results.status = run_cells(
        scheduled, options_.parallel, plan_.cells.size() - left.size(),
        [&](std::size_t index, const RunContext& context) { return work(plan_.cells[left[index]], context); },
        rest);
    for (const ExperimentCell& cell : plan_.cells) {
      if (std::optional<CellResult> done = read(cell)) results.cells.push_back(std::move(*done));
    }
    std::error_code ignored;
    fs::remove(folder_ / "running", ignored);  // only when it is empty
    return results;
  }

 private:
  std::optional<std::vector<BenchmarkTask>> prepare_tasks() {
    BenchmarkPlan plan;
    for (const ExperimentCell& cell : plan_.cells) {
      if (std::find(plan.tasks.begin(), plan.tasks.end(), cell.cell.task) == plan.tasks.end())
        plan.tasks.push_back(cell.cell.task);
    }
    const bool measures = std::any_of(plan_.cells.begin(), plan_.cells.end(),
                                      [](const ExperimentCell& cell) { return cell.is_measured; });
    if (measures) plan.observations = plan_.observations;
    BenchmarkOptions options;
    options.sbibm = options_.sbibm;
    return benchmark_tasks(options, plan, folder_ / "references", run_);
  }

  const BenchmarkTask& task_of(const ExperimentCell& cell) const {
    return *std::find_if(tasks_.begin(), tasks_.end(),
                         [&](const BenchmarkTask& one) { return one.task->name() == cell.cell.task; });
  }

  /// Everything that the bits of a network depend on.
  Record training_identity(const ExperimentCell& cell) const {
    Record record;
    record.set("nrec_version", nrec_version());
    record.set("isa", resolve_isa(run_.isa));
    record.set("task", cell.cell.task);
    record.set("budget", RecordValue(cell.cell.budget));
    record.set("seed", RecordValue(static_cast<std::int64_t>(cell.cell.seed)));
    record.set("component_per_call", cell.options.component_per_call && cell.cell.task == kMixtureTask);
    const Record settings = cell_settings(cell.options, cell.cell);
    for (const auto& [name, value] : settings.entries()) {
      if (!name.starts_with("options.sampling.")) record.set(name, value);
    }
    return record;
  }

  std::string base(const ExperimentCell& cell) const {
    std::string name =
        fmt::format("{}-{}-{}-{}", cell.cell.task, cell.regime, cell.architecture, cell.cell.algorithm);
    if (!cell.is_nre_b()) name += fmt::format("-gamma{}", cell.gamma);
    return name + fmt::format("-count{}-{}-seed{}", cell.count, cell.cell.budget, cell.cell.seed);
  }
  fs::path network_file(const ExperimentCell& cell, const char* ending) const {
    return folder_ / "networks" /
           fmt::format("{}-{}{}", base(cell), short_hash(training_identity(cell)), ending);
  }
  fs::path measured_file(const ExperimentCell& cell) const {
    Record identity = training_identity(cell);
    identity.merge("", cell_settings(cell.options, cell.cell));
    identity.set("observations_hash", task_of(cell).hash);
    return folder_ / "measured" / fmt::format("{}-{}.json", base(cell), short_hash(identity));
  }

  /// The record of a training, when it is whole and its network is the one that it speaks of.
  std::optional<Record> stored_training(const ExperimentCell& cell) const {
    std::optional<Record> record = readable_record(network_file(cell, ".json"));
    if (!record || !record->find("status")) return std::nullopt;
    if (!has_network(*record)) return record;
    const fs::path network = network_file(cell, ".safetensors");
    std::error_code code;
    if (!fs::is_regular_file(network, code)) return std::nullopt;
    const RecordValue* hash = record->find("network_hash");
    return hash && *hash == RecordValue(file_hash(network)) ? record : std::nullopt;
  }
  /// The record of a measurement, when it has a value for every observation.
  std::optional<Record> stored_measurement(const ExperimentCell& cell) const {
    std::optional<Record> record = readable_record(measured_file(cell));
    if (!record) return std::nullopt;
    CellResult result;
    result.measured = *record;
    return result.list("c2st").size() == plan_.observations.size() ? record : std::nullopt;
  }

  bool is_done(const ExperimentCell& cell) const {
    const std::optional<Record> trained = stored_training(cell);
    if (!trained) return false;
    return !cell.is_measured || !has_network(*trained) || stored_measurement(cell).has_value();
  }
  /// Says which of the files of a cell that is to be done were there and are of no use.
  void warn_of_damage(const ExperimentCell& cell) const {
    std::error_code code;
    const fs::path trained = network_file(cell, ".json");
    if (fs::exists(trained, code) && !stored_training(cell))
      run_.log.warning(trained.string() +
                       ": this record or its network is damaged or missing; the network is trained again");
    if (cell.is_measured && fs::exists(measured_file(cell), code) && !stored_measurement(cell))
      run_.log.warning(measured_file(cell).string() + ": is damaged; the network is measured again");
  }
  static bool has_network(const Record& trained) {
    const RecordValue* status = trained.find("status");
    return status && *status == RecordValue(std::string("done"));
  }

  /// Steps of training weigh by their pairs, a measurement like some of them; for the time left only.
  static double cost(const ExperimentCell& cell) {
    constexpr double kMeasuring = 3e7;
    const int epochs = cell_training(cell.options, cell.cell).max_num_epochs;
    const double pairs = static_cast<double>(cell.cell.budget) * cell.count * std::min(epochs, 100);
    return pairs + (cell.is_measured ? kMeasuring : 0.0);
  }

  /// Called from several threads.
  bool work(const ExperimentCell& cell, const RunContext& context) const {
    std::optional<RatioEstimator> estimator;
    std::optional<Record> trained = stored_training(cell);
    if (!trained) {
      const fs::path checkpoint = folder_ / "running" / network_file(cell, ".safetensors").filename();
      trained = training_identity(cell);
      const Stopwatch watch;
      estimator = train_cell(cell.options, cell.cell, {checkpoint, network_file(cell, ".safetensors")},
                             context, *trained);
      if (context.stop_requested()) return false;
      trained->set("status", estimator ? "done" : "failed");
      if (estimator) trained->set("network_hash", file_hash(network_file(cell, ".safetensors")));
      trained->set("threads", context.pool.num_threads());
      trained->set("seconds", watch.seconds());
      write_file(network_file(cell, ".json"), record_to_json(*trained) + "\n");
      std::error_code ignored;
      fs::remove(checkpoint, ignored);
    }
    if (!cell.is_measured || !has_network(*trained) || stored_measurement(cell)) return true;
    if (!estimator) estimator = load_estimator(network_file(cell, ".safetensors"));
    Record measured;
    measured.set("threads", context.pool.num_threads());
    if (!measure_cell(*estimator, cell.options.sampling, task_of(cell), context, measured)) return false;
    write_file(measured_file(cell), record_to_json(measured) + "\n");
    return true;
  }

  std::optional<CellResult> read(const ExperimentCell& cell) const {
    if (!is_done(cell)) return std::nullopt;
    CellResult result;
    result.cell = &cell;
    result.training = *stored_training(cell);
    if (!has_network(result.training)) return result;
    result.estimator = network_file(cell, ".safetensors");
    RatioEstimator estimator = load_estimator(result.estimator);
    result.history = std::move(estimator.history);
    result.best_epoch = estimator.best_epoch;
    if (cell.is_measured) result.measured = stored_measurement(cell).value_or(Record());
    return result;
  }

  const ExperimentPlan& plan_;
  const ExperimentOptions& options_;
  fs::path folder_;
  const RunContext& run_;
  std::vector<BenchmarkTask> tasks_;
};

}  // namespace

double CellResult::number(std::string_view name) const {
  for (const Record* record : {&measured, &training}) {
    const RecordValue* value = record->find(name);
    if (!value) continue;
    if (const auto* real = std::get_if<double>(value)) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<double> CellResult::list(std::string_view name) const {
  const RecordValue* value = measured.find(name);
  if (!value) return {};
  if (const auto* real = std::get_if<std::vector<double>>(value)) return *real;
  if (const auto* whole = std::get_if<std::vector<std::int64_t>>(value))
    return {whole->begin(), whole->end()};
  return {};
}

CellResults run_experiment_cells(const ExperimentPlan& plan, const ExperimentOptions& options,
                                 const fs::path& folder, const RunContext& run) {
  return CellsRun(plan, options, folder, run).results();
}

}  // namespace nrec
