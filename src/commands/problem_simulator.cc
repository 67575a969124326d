#include "commands/problem_simulator.h"

#include <fmt/format.h>

#include <algorithm>

#include "commands/campaign_run.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"
#include "nrec/simulation/simulator.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

std::string duration_text(double seconds) {
  if (seconds < 120.0) return fmt::format("{:.3g} s", seconds);
  if (seconds < 7200.0) return fmt::format("{:.0f} min", seconds / 60.0);
  return seconds < 172800.0 ? fmt::format("{:.1f} h", seconds / 3600.0)
                            : fmt::format("{:.1f} days", seconds / 86400.0);
}

/// `otherwise` where there is none; other programs may have written a whole number.
double number(const Record& record, const char* name, double otherwise = 0.0) {
  const RecordValue* value = record.find(name);
  if (!value) return otherwise;
  if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(value);
  return real ? *real : otherwise;
}

}  // namespace

ProblemSimulator::ProblemSimulator(const Problem& problem, const Prior& prior, std::uint64_t seed) {
  const SimulationOptions& options = problem.simulations;
  if (!options.task.empty()) {
    task_ =
        make_task(options.task, {.component_per_call = options.component_per_call, .component_seed = seed});
    hash_ = content_hash(options.task + (options.component_per_call ? " component_per_call" : ""));
    return;
  }
  ExternalSimulatorOptions external = {
      .command = options.command,
      .protocol = options.protocol,
      .line = options.line,
      .library = options.library.empty() ? "" : fs::absolute(options.library).string(),
      .row_time_limit = options.row_time_limit,
      .memory_limit = options.memory_limit,
      .retries = options.retries,
      .rows_per_process = options.rows_per_process,
      .batch_rows = options.batch_rows,
      .scratch = options.scratch};
  const fs::path folder = options.folder.empty() ? problem.file.parent_path() : fs::path(options.folder);
  external.folder = folder.empty() ? fs::current_path() : fs::absolute(folder);
  external_options_ = external;
  names_ = prior.names();
  external_.emplace(std::move(external), names_);
  hash_ = external_->hash();
}

void ProblemSimulator::prepare(const std::optional<Record>& stored, const Prior& prior, std::uint64_t seed,
                               const RunContext& run, std::uint64_t num_rows, int workers) {
  if (task_) {
    shape_ = {task_->simulator().dim_x()};
    return;
  }
  if (stored) return take(*stored);
  constexpr std::size_t kPreflightRows = 8;
  Matrix<double> theta(kPreflightRows, prior.dim());
  prior.sample(seed, Stream::prior, 0, theta.view());
  run.log.info("pre-flight: trying " + name());
  const PreflightReport report = external_->preflight(theta, seed, run);
  for (const std::string& warning : report.warnings) run.log.warning(warning);
  shape_ = report.x_shape;
  if (shape_.empty()) return;  // stopped
  record_.set("row_time_limit", report.row_time_limit);
  record_.set("is_reproducible", report.is_reproducible);
  record_.set("seed_has_effect", report.seed_has_effect);
  record_.set("preflight_seconds_per_row", report.seconds_per_row);
  record_.set("rows_per_call", report.rows_per_call);
  record_.set("startup_seconds", report.startup_seconds);
  run.log.info(fmt::format(
      "pre-flight: x has {} numbers, a row takes {}; {} rows on {} workers: about {}", dim_x(),
      duration_text(report.seconds_per_row), num_rows, workers,
      duration_text(report.seconds_per_row * static_cast<double>(num_rows) / static_cast<double>(workers))));
}

std::size_t ProblemSimulator::dim_x() const {
  std::size_t size = 1;
  for (const std::size_t n : shape_) size *= n;
  return size;
}

std::size_t ProblemSimulator::rows_per_call() const {
  const RecordValue* value = record_.find("rows_per_call");
  const auto* rows = value ? std::get_if<std::int64_t>(value) : nullptr;
  return rows && *rows > 0 ? static_cast<std::size_t>(*rows) : 1;
}

void ProblemSimulator::take(const Record& stored) {
  for (const std::int64_t n : std::get<std::vector<std::int64_t>>(*stored.find("x_shape")))
    shape_.push_back(static_cast<std::size_t>(n));
  for (const char* name : {"row_time_limit", "is_reproducible", "seed_has_effect",
                           "preflight_seconds_per_row", "rows_per_call", "startup_seconds"}) {
    if (const RecordValue* value = stored.find(name)) record_.set(name, *value);
  }
  if (external_options_.row_time_limit == 0.0) {
    external_options_.row_time_limit = number(record_, "row_time_limit");
    external_.emplace(external_options_, names_);
  }
  external_->set_x_shape(shape_, number(record_, "startup_seconds", -1.0),
                         number(record_, "preflight_seconds_per_row", -1.0));
}

/// campaign.json of an earlier run, or nullopt when there is none that makes sense: then everything is found out anew.
std::optional<Record> stored_settings(const fs::path& folder) {
  std::error_code code;
  const fs::path path = folder / files::kCampaign;
  if (!fs::exists(path, code)) return std::nullopt;
  try {
    Record record = record_from_json(read_file(path), path.string());
    const auto holds = [&](const char* name, auto kind) {
      const RecordValue* value = record.find(name);
      return value && std::holds_alternative<decltype(kind)>(*value);
    };
    if (!holds("x_shape", std::vector<std::int64_t>()) || !holds("simulator_hash", std::string()) ||
        !holds("seed", std::int64_t()))
      return std::nullopt;
    const auto& shape = std::get<std::vector<std::int64_t>>(*record.find("x_shape"));
    if (!shape.empty() && std::ranges::all_of(shape, [](std::int64_t n) { return n >= 1; })) return record;
  } catch (const IoError&) {
  }
  return std::nullopt;
}

int worker_count(const Problem& problem, const RunContext& run) {
  return problem.simulations.workers > 0 ? static_cast<int>(problem.simulations.workers)
                                         : run.pool.num_threads();
}

}  // namespace nrec
