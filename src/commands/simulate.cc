#include "nrec/commands/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "commands/campaign_run.h"
#include "commands/results.h"
#include "nrec/core/environment.h"
#include "nrec/core/error.h"
#include "nrec/io/npz.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

CommandStatus command_status(CampaignStatus status) {
  switch (status) {
    case CampaignStatus::complete:
      return CommandStatus::done;
    case CampaignStatus::stopped:
      return CommandStatus::stopped;
    case CampaignStatus::budget_spent:
      return CommandStatus::budget_spent;
    case CampaignStatus::too_many_failures:
      break;
  }
  return CommandStatus::simulations_failed;
}

Shard wanted_shard(const SimulateOptions& options, const RunContext& run) {
  if (!options.shard.empty()) return parse_shard(options.shard);
  const std::optional<ArrayTask> task = environment_array_task();
  if (!task) return {};
  if (task->count == 0)
    throw UsageError(
        "the job array's numbers (SLURM_ARRAY_TASK_ID, _COUNT, _MIN, _STEP) are no unbroken sequence; say "
        "which part "
        "this is by --shard, 3/16 for the third of sixteen");
  run.log.info(fmt::format("job array: this is shard {} of {}", task->index + 1, task->count));
  return {task->index, task->count};
}

}  // namespace

Shard parse_shard(const std::string& text) {
  Shard shard = {0, 0};
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, shard.index);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '/') {
    const auto second = std::from_chars(first.ptr + 1, end, shard.count);
    if (second.ec == std::errc() && second.ptr == end && shard.index >= 1 && shard.index <= shard.count) {
      --shard.index;
      return shard;
    }
  }
  throw UsageError("--shard: \"" + text +
                   "\" is not a part of a whole; write --shard 3/16 for the third of sixteen");
}

CommandResult simulate(const Problem& problem, const SimulateOptions& options, const OutputOptions& output,
                       const RunContext& run) {
  validate_simulator(problem);
  const Stopwatch watch;
  const Prior prior = problem_prior(problem);
  const CampaignRunOptions campaign = {
      .folder = options.out.empty() ? campaign_folder(problem) : fs::path(options.out),
      .shard = wanted_shard(options, run),
      .changed = options.accept_changes ? ChangedCampaign::accept : ChangedCampaign::refuse};
  CommandResult result;
  result.folder = campaign.folder;
  result.record = started_record("simulate", output, run);
  const CampaignRun done = run_problem_campaign(problem, prior, campaign, run);
  result.status = command_status(done.report.status);
  result.message = done.report.message;
  if (result.status == CommandStatus::stopped || result.status == CommandStatus::budget_spent)
    result.message += "; the same command goes on";
  result.record.merge("campaign.", done.record);
  result.record.set("status", command_status_name(result.status));
  result.record.set("message", result.message);
  result.record.set("seconds", watch.seconds());
  return result;
}

CommandResult export_campaign(const ExportOptions& options, const OutputOptions& output,
                              const RunContext& run) {
  const fs::path folder = fs::path(options.campaign).lexically_normal();
  fs::path file = options.out;
  if (file.empty())
    file = (folder.has_filename() ? folder : folder.parent_path()).filename().string() + ".npz";
  std::error_code code;
  if (!options.overwrite && fs::exists(file, code))
    throw ConfigError(file.string() +
                      ": is there already; replace it by --overwrite, or choose another --out");
  const CampaignReader reader(folder);
  const CampaignIdentity& identity = reader.identity();
  SimulationSet set = reader.read(static_cast<std::uint64_t>(options.num_simulations));
  NumericArray status = {.shape = {set.num_rows()}, .values = {}};
  for (const RowStatus s : set.status) status.values.push_back(static_cast<double>(s));
  NumericArray x = {.shape = {set.num_rows()}, .values = std::move(set.x.values())};
  x.shape.insert(x.shape.end(), identity.x_shape.begin(), identity.x_shape.end());
  NamedArrays arrays;
  arrays.emplace_back("theta", NumericArray{.shape = {set.num_rows(), identity.dim_theta()},
                                            .values = std::move(set.theta.values())});
  arrays.emplace_back("x", std::move(x));
  arrays.emplace_back("status", std::move(status));
  write_npz(file, arrays, false);

  CommandResult result;
  result.folder = file;
  result.record = started_record("export", output, run);
  const auto num_ok = std::ranges::count(find_array(arrays, "status")->values, 0.0);
  const std::size_t num_rows = arrays[0].second.shape[0];
  result.message =
      fmt::format("{} rows, {} parameters, {} data", num_rows, identity.dim_theta(), identity.dim_x());
  result.record.set("status", command_status_name(result.status));
  result.record.set("message", result.message);
  result.record.set("file", file.string());
  result.record.set("num_rows", num_rows);
  result.record.set("num_ok", RecordValue(static_cast<std::int64_t>(num_ok)));
  return result;
}

}  // namespace nrec
