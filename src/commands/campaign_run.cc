#include "commands/campaign_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <optional>

#include "commands/results.h"
#include "nrec/commands/simulate.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"
#include "nrec/simulation/external_simulator.h"
#include "nrec/simulation/simulator.h"
#include "nrec/tasks/task.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

std::string duration_text(double seconds) {
  if (seconds < 120.0) return fmt::format("{:.3g} s", seconds);
  if (seconds < 7200.0) return fmt::format("{:.0f} min", seconds / 60.0);
  return seconds < 172800.0 ? fmt::format("{:.1f} h", seconds / 3600.0)
                            : fmt::format("{:.1f} days", seconds / 86400.0);
}

std::vector<std::string> prior_lines(const Prior& prior) {
  std::vector<std::string> lines = prior.description();
  const Matrix<double>& samples = prior.samples();
  if (!samples.empty()) {
    const auto* bytes = reinterpret_cast<const char*>(samples.values().data());
    lines.push_back("samples " + content_hash({bytes, samples.values().size() * sizeof(double)}));
  }
  return lines;
}

/// The simulator of a problem behind one face: an external one or a built-in task.
class ProblemSimulator {
 public:
  ProblemSimulator(const Problem& problem, const Prior& prior, std::uint64_t seed) {
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

  std::string name() const { return task_ ? "task " + task_->name() : external_->name(); }
  const std::string& hash() const { return hash_; }

  /// Learns the shape of x, from what an earlier run left if it fits, else by trying.
  void prepare(const std::optional<Record>& stored, const Prior& prior, std::uint64_t seed,
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
    run.log.info(fmt::format("pre-flight: x has {} numbers, a row takes {}; {} rows on {} workers: about {}",
                             product(shape_), duration_text(report.seconds_per_row), num_rows, workers,
                             duration_text(report.seconds_per_row * static_cast<double>(num_rows) /
                                           static_cast<double>(workers))));
  }

  std::unique_ptr<RowRunner> make_runner(std::uint64_t seed) {
    return task_ ? make_row_runner(task_->simulator(), seed) : external_->make_runner();
  }
  /// Empty when a stop was requested before it was known.
  const std::vector<std::size_t>& x_shape() const { return shape_; }
  std::size_t rows_per_call() const {
    const RecordValue* value = record_.find("rows_per_call");
    const auto* number = value ? std::get_if<std::int64_t>(value) : nullptr;
    return number && *number > 0 ? static_cast<std::size_t>(*number) : 1;
  }
  /// What prepare() found, for campaign.json.
  const Record& record() const { return record_; }

 private:
  /// 0 where there is none; other programs may have written a whole number.
  static double number(const Record& record, const char* name) {
    const RecordValue* value = record.find(name);
    if (!value) return 0.0;
    if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
    const auto* real = std::get_if<double>(value);
    return real ? *real : 0.0;
  }
  static std::size_t product(const std::vector<std::size_t>& shape) {
    std::size_t size = 1;
    for (const std::size_t n : shape) size *= n;
    return size;
  }

  void take(const Record& stored) {
    for (const std::int64_t n : std::get<std::vector<std::int64_t>>(*stored.find("x_shape")))
      shape_.push_back(static_cast<std::size_t>(n));
    for (const char* name : {"row_time_limit", "is_reproducible", "seed_has_effect",
                             "preflight_seconds_per_row", "rows_per_call"}) {
      if (const RecordValue* value = stored.find(name)) record_.set(name, *value);
    }
    if (external_options_.row_time_limit == 0.0) {
      external_options_.row_time_limit = number(record_, "row_time_limit");
      external_.emplace(external_options_, names_);
    }
    external_->set_x_shape(shape_);
  }

  std::unique_ptr<Task> task_;
  ExternalSimulatorOptions external_options_;
  std::vector<std::string> names_;
  std::optional<ExternalSimulator> external_;
  std::string hash_;
  std::vector<std::size_t> shape_;
  Record record_;
};

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
  } catch (const Error&) {
  }
  return std::nullopt;
}

Record settings_record(const CampaignIdentity& identity, const Record& found) {
  Record record;
  record.set("schema_version", Record::kSchemaVersion);
  record.set("nrec_version", nrec_version());
  record.set("simulator", identity.simulator);
  record.set("simulator_hash", identity.simulator_hash);
  record.set("seed", RecordValue(static_cast<std::int64_t>(identity.seed)));
  record.set("parameters", RecordValue(identity.parameter_names));
  record.set("prior", RecordValue(identity.prior));
  record.set("x_shape",
             RecordValue(std::vector<std::int64_t>(identity.x_shape.begin(), identity.x_shape.end())));
  record.merge("", found);
  return record;
}

/// What others see of a campaign while its database is locked.
Record progress_record(const CampaignProgress& progress, const Shard& shard, std::string_view status) {
  Record record;
  record.set("schema_version", Record::kSchemaVersion);
  record.set("status", status);
  record.set("shard", fmt::format("{}/{}", shard.index + 1, shard.count));
  record.set("process", RecordValue(static_cast<std::int64_t>(getpid())));
  record.set("unix_time", RecordValue(static_cast<std::int64_t>(std::time(nullptr))));
  const auto set = [&](const std::string& name, std::uint64_t value) {
    record.set(name, RecordValue(static_cast<std::int64_t>(value)));
  };
  set("num_wanted", progress.num_wanted);
  set("num_stored", progress.num_stored);
  set("num_new", progress.num_new);
  set("num_running", progress.num_running);
  for (std::size_t i = 0; i < kNumRowStatuses; ++i) {
    std::string name(row_status_name(static_cast<RowStatus>(i)));
    for (char& c : name) c = c == ' ' || c == '-' ? '_' : c;
    set("new." + name, progress.new_by_status[i]);
  }
  std::vector<std::string> reasons;
  std::vector<std::int64_t> counts;
  for (const auto& [reason, count] : progress.reasons) {
    reasons.push_back(reason);
    counts.push_back(static_cast<std::int64_t>(count));
  }
  record.set("failures.reason", RecordValue(reasons));
  record.set("failures.count", RecordValue(counts));
  record.set("seconds", progress.seconds);
  record.set("rows_per_second", progress.rows_per_second);
  record.set("seconds_left", progress.seconds_left);
  return record;
}

void write_json(const fs::path& path, const Record& record) {
  write_file(path, record_to_json(with_valid_text(record)) + "\n");
}

/// The progress file is for onlookers: a disk that is full is the store's to report, which knows what is safe.
void try_to_write_json(const fs::path& path, const Record& record) {
  try {
    write_json(path, record);
  } catch (const IoError&) {
  }
}

Record campaign_record(const CampaignRun& run, const CampaignIdentity& identity,
                       const CampaignRunOptions& options) {
  Record record;
  record.set("folder", options.folder.string());
  record.set("simulator", identity.simulator);
  record.set("simulator_hash", identity.simulator_hash);
  record.set("seed", RecordValue(static_cast<std::int64_t>(identity.seed)));
  record.merge("",
               progress_record(run.report.progress, options.shard, campaign_status_name(run.report.status)));
  return record;
}

}  // namespace

std::string progress_file_name(const Shard& shard) {
  return fmt::format("progress-{}-of-{}.json", shard.index + 1, shard.count);
}

bool uses_campaign(const Problem& problem) {
  const SimulationOptions& options = problem.simulations;
  return !options.command.empty() || !options.library.empty() || !options.campaign.empty();
}

fs::path campaign_folder(const Problem& problem) {
  if (!problem.simulations.campaign.empty()) return problem.simulations.campaign;
  const std::string stem = problem.file.empty() ? problem.simulations.task : problem.file.stem().string();
  return (stem.empty() ? std::string("nrec") : stem) + "_campaign";
}

void check_campaign_prior(const CampaignIdentity& stored, const Prior& prior, const fs::path& folder) {
  CampaignIdentity wanted = stored;
  wanted.parameter_names = prior.names();
  wanted.prior = prior_lines(prior);
  const std::vector<std::string> changes = differences(stored, wanted);
  if (changes.empty()) return;
  throw ConfigError(fmt::format(
      "{}: the rows there were drawn from another prior: {}; use the [parameters] of the campaign, or "
      "another campaign",
      folder.string(), fmt::join(changes, "; ")));
}

CampaignRun run_problem_campaign(const Problem& problem, const Prior& prior,
                                 const CampaignRunOptions& options, const RunContext& run) {
  const Stopwatch watch;
  std::optional<Record> stored = stored_settings(options.folder);
  const std::uint64_t seed = stored && options.take_stored_seed
                                 ? static_cast<std::uint64_t>(std::get<std::int64_t>(*stored->find("seed")))
                                 : run.seed;
  ProblemSimulator simulator(problem, prior, seed);
  CampaignIdentity identity = {.seed = seed,
                               .parameter_names = prior.names(),
                               .prior = prior_lines(prior),
                               .simulator = simulator.name(),
                               .simulator_hash = simulator.hash(),
                               .x_shape = {}};
  // Another simulator has to show what it does again.
  if (stored && std::get<std::string>(*stored->find("simulator_hash")) != identity.simulator_hash &&
      options.changed == ChangedCampaign::accept)
    stored.reset();
  const int workers = problem.simulations.workers > 0 ? static_cast<int>(problem.simulations.workers)
                                                      : run.pool.num_threads();
  const auto num_simulations = static_cast<std::uint64_t>(problem.simulations.num_simulations);
  simulator.prepare(stored, prior, identity.seed, run, num_simulations, workers);
  identity.x_shape = simulator.x_shape();
  CampaignRun result;
  if (identity.x_shape.empty()) {
    result.report = {.status = run.stop_requested() ? CampaignStatus::stopped : CampaignStatus::budget_spent,
                     .message = run.stop_requested()
                                    ? "stopped on request in the pre-flight; nothing is stored yet"
                                    : "the time limit was over in the pre-flight; nothing is stored yet"};
    result.record = campaign_record(result, identity, options);
    return result;
  }

  CampaignWriter writer(options.folder, identity, options.shard, options.changed);
  if (!stored || options.changed == ChangedCampaign::accept)
    write_json(options.folder / files::kCampaign, settings_record(identity, simulator.record()));
  const fs::path progress_path = options.folder / progress_file_name(options.shard);
  const CampaignOptions campaign = {.num_simulations = num_simulations,
                                    .shard = options.shard,
                                    .workers = workers,
                                    .rows_per_call = simulator.rows_per_call(),
                                    .max_failure_fraction = problem.simulations.max_failure_fraction};
  RunContext part = run;
  part.time_limit = std::max(0.0, run.time_limit - watch.seconds());
  result.report = run_campaign(
      prior, [&] { return simulator.make_runner(identity.seed); }, writer, identity, campaign, part,
      [&](const CampaignProgress& progress) {
        try_to_write_json(progress_path, progress_record(progress, options.shard, "running"));
      });
  try_to_write_json(progress_path, progress_record(result.report.progress, options.shard,
                                                   campaign_status_name(result.report.status)));
  result.record = campaign_record(result, identity, options);
  return result;
}

}  // namespace nrec
