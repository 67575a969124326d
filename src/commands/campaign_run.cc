#include "commands/campaign_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <optional>

#include "commands/problem_simulator.h"
#include "commands/results.h"
#include "nrec/commands/simulate.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> prior_lines(const Prior& prior) {
  std::vector<std::string> lines = prior.description();
  const Matrix<double>& samples = prior.samples();
  if (!samples.empty()) {
    const auto* bytes = reinterpret_cast<const char*>(samples.values().data());
    lines.push_back("samples " + content_hash({bytes, samples.values().size() * sizeof(double)}));
  }
  return lines;
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
  const int workers = worker_count(problem, run);
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
