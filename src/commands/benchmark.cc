#include "nrec/commands/benchmark.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <mutex>

#include "commands/benchmark_cell.h"
#include "commands/benchmark_plan.h"
#include "commands/benchmark_references.h"
#include "commands/benchmark_schedule.h"
#include "commands/benchmark_table.h"
#include "commands/results.h"
#include "commands/unfinished_files.h"
#include "nrec/core/error.h"
#include "nrec/core/stop.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTableCsv = "table.csv", kTableMarkdown = "table.md";
constexpr std::array kBenchmarkFiles = {kTableCsv, kTableMarkdown, files::kRecord};

OutputOptions always_going_on(OutputOptions output) {
  if (output.out.empty())
    throw UsageError("--out is missing; name the folder of this benchmark, in which it can go on: --out DIR");
  output.resume = !output.overwrite;  // the same command goes on; cells say whether they are the same
  return output;
}

/// One call of benchmark().
class Benchmark {
 public:
  Benchmark(const BenchmarkOptions& options, const OutputOptions& output, const RunContext& run)
      : options_(options),
        output_(always_going_on(output)),
        run_(run),
        plan_(benchmark_plan(options)),
        cells_(plan_.cells()),
        anchors_(read_anchors(options.anchors, options.anchor_column, plan_)),
        folder_(checked_out(), kBenchmarkFiles, output_) {
    result_.command.folder = folder_.path();
    start_record();
  }

  BenchmarkResult result() {
    folder_.refuse_inputs(options_.anchors);
    if (!output_.overwrite) earlier_record(folder_);  // refuses one of a newer version
    remove_unfinished_files(folder_.path());
    if (output_.overwrite) remove_asked_for();
    std::optional<std::vector<BenchmarkTask>> tasks =
        benchmark_tasks(options_, plan_, folder_.file("references"), run_);
    if (!tasks) {
      end(run_.stop_requested() ? ScheduleStatus::stopped : ScheduleStatus::budget_spent,
          "preparing references");
      return std::move(result_);
    }
    tasks_ = std::move(*tasks);
    const std::vector<BenchmarkCell> left = cells_left();
    fs::create_directories(folder_.file("cells"));
    fs::create_directories(folder_.file("running"));
    RunContext rest = run_;
    rest.time_limit = run_.time_limit - watch_.seconds();
    ScheduleStatus status = ScheduleStatus::done;
    try {
      std::vector<ScheduledCell> scheduled;
      for (const BenchmarkCell& cell : left) scheduled.push_back(scheduled_cell(options_, cell));
      status = run_cells(
          scheduled, options_.parallel, cells_.size() - left.size(),
          [&](std::size_t index, const RunContext& context) { return work(left[index], context); }, rest);
    } catch (...) {
      write_tables();  // of what is done
      throw;
    }
    end(status, "running cells");
    return std::move(result_);
  }

 private:
  /// The folder, when everything that can be refused before it is made has been accepted.
  fs::path checked_out() const {
    check_cells(options_, plan_, run_);
    std::error_code code;
    if (!options_.sbibm.empty() && !fs::is_directory(fs::path(options_.sbibm) / "tasks", code)) {
      throw IoError(
          fmt::format("{}: holds no folder tasks; --sbibm names the folder of the published benchmark whose "
                      "tasks/<task>/files/num_observation_<N> are to be read; without --sbibm nrec makes its "
                      "own observations",
                      options_.sbibm));
    }
    return output_.out;
  }

  void start_record() {
    Record& record = result_.command.record;
    record.set("schema_version", Record::kSchemaVersion);
    record.set("command", "benchmark");
    record.set("nrec_version", nrec_version());
    record.set("command_line", output_.command_line);
    record.set("threads", run_.pool.num_threads());
    record.set("cells", cells_.size());
  }

  fs::path record_file(const BenchmarkCell& cell) const {
    return folder_.file("cells") / (cell.name() + ".json");
  }
  fs::path estimator_file(const BenchmarkCell& cell) const {
    return folder_.file("cells") / (cell.name() + ".safetensors");
  }
  /// Of training; its name has the settings in it, so that no other cell's is ever taken up.
  fs::path checkpoint_file(const BenchmarkCell& cell) const {
    const std::string hash = content_hash(record_to_json(identity(cell), -1));
    return folder_.file("running") /
           fmt::format("{}-{}.safetensors", cell.name(), hash.substr(hash.find(':') + 1));
  }
  const BenchmarkTask& task_of(const BenchmarkCell& cell) const {
    const auto found = std::find_if(tasks_.begin(), tasks_.end(),
                                    [&](const BenchmarkTask& one) { return one.task->name() == cell.task; });
    return *found;
  }
  Record identity(const BenchmarkCell& cell) const {
    return cell_identity(options_, cell, task_of(cell), run_);
  }

  void remove_asked_for() const {
    folder_.clear();
    std::error_code ignored;
    for (const BenchmarkCell& cell : cells_) {
      fs::remove(record_file(cell), ignored);
      fs::remove(estimator_file(cell), ignored);
      for (const auto& entry : fs::directory_iterator(folder_.file("running"), ignored)) {
        if (entry.path().filename().string().starts_with(cell.name() + "-"))
          fs::remove(entry.path(), ignored);
      }
    }
  }

  /// Takes over the cells that are done; the others are to be run.
  std::vector<BenchmarkCell> cells_left() {
    std::vector<BenchmarkCell> left;
    for (const BenchmarkCell& cell : cells_) {
      if (std::optional<Record> stored = stored_cell(record_file(cell), identity(cell))) {
        records_.emplace(cell.name(), std::move(*stored));
      } else {
        left.push_back(cell);
      }
    }
    if (left.size() < cells_.size())
      run_.log.info(
          fmt::format("{} of {} cells are done already", cells_.size() - left.size(), cells_.size()));
    return left;
  }

  /// Called from several threads.
  bool work(const BenchmarkCell& cell, const RunContext& context) {
    const fs::path checkpoint = checkpoint_file(cell);
    const std::optional<Record> record =
        run_cell(options_, cell, task_of(cell), {checkpoint, estimator_file(cell)}, context);
    if (!record) return false;
    const std::string text = record_to_json(*record) + "\n";
    write_file(record_file(cell), text);
    std::error_code ignored;
    fs::remove(checkpoint, ignored);
    // As it will be read the next time.
    Record stored = record_from_json(text, record_file(cell).string());
    const std::lock_guard lock(mutex_);
    records_.emplace(cell.name(), std::move(stored));
    return true;
  }

  void write_tables() {
    result_.cells.clear();
    for (const BenchmarkCell& cell : cells_) {
      const auto found = records_.find(cell.name());
      if (found != records_.end()) result_.cells.push_back(found->second);
    }
    const BenchmarkTable table(plan_, result_.cells, anchors_);
    result_.table = table.markdown();
    write_file(folder_.file(kTableCsv), table.csv());
    write_file(folder_.file(kTableMarkdown), result_.table);
  }

  void end(ScheduleStatus status, std::string_view stage) {
    std::string count = "the cells were not looked at";
    std::size_t failed = 0;
    if (!tasks_.empty()) {  // else the tables of an earlier call stay as they are
      write_tables();
      for (const Record& cell : result_.cells) {
        const RecordValue* c2st = cell.find("c2st_mean");
        if (!c2st || !std::holds_alternative<double>(*c2st) || std::isnan(std::get<double>(*c2st))) ++failed;
      }
      count = fmt::format("{} of {} cells are done", result_.cells.size(), cells_.size());
    }
    CommandResult& command = result_.command;
    if (status == ScheduleStatus::stopped) {
      command.status = CommandStatus::stopped;
      command.message =
          fmt::format("stopped on request while {}; {}; the same command goes on", stage, count);
    } else if (status == ScheduleStatus::budget_spent) {
      command.status = CommandStatus::budget_spent;
      command.message =
          fmt::format("time limit reached while {}; {}; the same command goes on", stage, count);
    } else {
      command.message = count;
      if (failed > 0)
        command.message += fmt::format(
            ", {} of them without a usable network or draws (training_message and problems in their records)",
            failed);
      if (failed == cells_.size()) command.status = CommandStatus::failed;
    }
    finish_record(failed);
  }

  void finish_record(std::size_t failed) {
    CommandResult& command = result_.command;
    command.record.set("status", command_status_name(command.status));
    command.record.set("message", command.message);
    command.record.set("cells_done", result_.cells.size());
    command.record.set("cells_failed", failed);
    command.record.set("seconds", watch_.seconds());
    write_record(command.record, folder_);
    std::error_code ignored;
    fs::remove(folder_.file("running"), ignored);  // only when it is empty
  }

  const BenchmarkOptions& options_;
  const OutputOptions output_;
  const RunContext& run_;
  Stopwatch watch_;
  const BenchmarkPlan plan_;
  const std::vector<BenchmarkCell> cells_;
  const Anchors anchors_;
  OutputFolder folder_;
  std::vector<BenchmarkTask> tasks_;
  std::mutex mutex_;
  std::map<std::string, Record> records_;  // by name of the cell
  BenchmarkResult result_;
};

}  // namespace

BenchmarkResult benchmark(const BenchmarkOptions& options, const OutputOptions& output,
                          const RunContext& run) {
  return Benchmark(options, output, run).result();
}

}  // namespace nrec
