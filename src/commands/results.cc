#include "commands/results.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "commands/draws_netcdf.h"
#include "commands/failures.h"
#include "commands/posterior_facts.h"
#include "core/utf8_text.h"
#include "nrec/core/error.h"
#include "nrec/inference/posterior.h"
#include "nrec/io/csv.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"
#include "nrec/io/npz.h"
#include "nrec/kernels/dispatch.h"

namespace nrec {

namespace {

constexpr std::string_view kSampling = "sampling.";

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

}  // namespace

Record with_valid_text(const Record& record) {
  Record result;
  for (const auto& [name, value] : record.entries()) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      result.set(name, utf8_text(*text));
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
      std::vector<std::string> valid;
      for (const std::string& item : *texts) valid.push_back(utf8_text(item));
      result.set(name, RecordValue(valid));
    } else {
      result.set(name, value);
    }
  }
  return result;
}

std::string_view nrec_version() { return NREC_VERSION; }

std::string_view command_status_name(CommandStatus status) {
  switch (status) {
    case CommandStatus::done:
      return "done";
    case CommandStatus::budget_spent:
      return "budget spent";
    case CommandStatus::stopped:
      return "stopped";
    case CommandStatus::simulations_failed:
      return "too many failures";
    case CommandStatus::failed:
      break;
  }
  return "failed";
}

Record started_record(std::string_view command, const OutputOptions& output, const RunContext& run) {
  Record record;
  record.set("schema_version", Record::kSchemaVersion);
  record.set("command", command);
  record.set("status", "running");
  record.set("message", "");
  record.set("nrec_version", nrec_version());
  record.set("command_line", output.command_line);
  record.set("created_at", utc_now());
  record.set("seed", RecordValue(static_cast<std::int64_t>(run.seed)));
  record.set("isa", resolve_isa(run.isa));
  record.set("threads", run.pool.num_threads());
  return record;
}

void add_options(Record& record, const OptionTable& table) {
  for (const OptionEntry& entry : table.entries()) {
    const std::string name = "options." + entry.section + "." + entry.name;
    std::visit([&](const auto& value) { record.set(name, RecordValue(value)); }, entry.current());
  }
}

void add_training(Record& record, const TrainingSummary& summary, const RatioEstimator* estimator) {
  const auto set = [&](const char* name, auto value) { record.set(std::string("training.") + name, value); };
  set("status", training_status_name(summary.status));
  set("message", summary.message);
  set("usable", summary.usable);
  set("num_epochs", summary.num_epochs);
  set("best_epoch", summary.best_epoch);
  set("best_validation_loss", summary.best_validation_loss);
  set("best_validation_loss_se", summary.best_validation_loss_se);
  set("num_training_rows", summary.num_training_rows);
  set("num_validation_rows", summary.num_validation_rows);
  set("batch_size", summary.batch_size);
  set("seconds", summary.seconds);
  set("warnings", RecordValue(summary.warnings));
  if (estimator && estimator->success) {
    set("success.message", summary.success_message);
    set("success.num_epochs", summary.success_epochs);
    set("success.seconds", summary.success_seconds);
    record.merge("training.success.", success_record(*estimator->success));
  }
  if (!estimator) return;
  std::vector<double> training_loss, validation_loss;
  for (const EpochRecord& epoch : estimator->history) {
    training_loss.push_back(epoch.training_loss);
    validation_loss.push_back(epoch.validation_loss);
  }
  set("history.training_loss", RecordValue(training_loss));
  set("history.validation_loss", RecordValue(validation_loss));
  const EpochRecord& best = estimator->history[static_cast<std::size_t>(estimator->best_epoch) - 1];
  set("mean_ratio", best.mean_ratio);
  set("mean_log_z", best.mean_log_z);
  set("sd_log_z", best.sd_log_z);
  set("i0", best.i0);
  set("i1", best.i1);
}

void add_sampling(Record& record, const PosteriorDraws& draws) {
  record.set("sampling.status", sampling_status_name(draws.status));
  record.set("sampling.message", draws.message);
  record.set("sampling.method", draws.method);
  record.set("sampling.num_draws", draws.size());
  record.set("sampling.num_chains", draws.num_chains);
  record.merge(kSampling, draws.statistics);
}

void add_marginals(Record& record, const std::vector<MarginalSummary>& marginals) {
  const auto column = [&](const char* name, double MarginalSummary::*member) {
    std::vector<double> values;
    for (const MarginalSummary& marginal : marginals) values.push_back(marginal.*member);
    record.set(std::string("marginals.") + name, RecordValue(values));
  };
  std::vector<std::string> names;
  for (const MarginalSummary& marginal : marginals) names.push_back(marginal.name);
  record.set("marginals.name", RecordValue(names));
  column("mean", &MarginalSummary::mean);
  column("sd", &MarginalSummary::sd);
  column("quantile05", &MarginalSummary::quantile05);
  column("quantile50", &MarginalSummary::quantile50);
  column("quantile95", &MarginalSummary::quantile95);
  column("ess", &MarginalSummary::ess);
  column("mcse_mean", &MarginalSummary::mcse_mean);
  column("mcse_sd", &MarginalSummary::mcse_sd);
}

void add_check(Record& record, const CheckReport& report) {
  record.set("check.verdict", verdict_name(report.verdict));
  record.set("check.sentence", report.sentence);
  std::vector<std::string> names, verdicts, sentences;
  for (const CheckItem& item : report.items) {
    names.push_back(item.name);
    verdicts.emplace_back(verdict_name(item.verdict));
    sentences.push_back(item.sentence);
  }
  record.set("check.items.name", RecordValue(names));
  record.set("check.items.verdict", RecordValue(verdicts));
  record.set("check.items.sentence", RecordValue(sentences));
  record.merge("check.", report.record);
}

void write_record(const Record& record, const OutputFolder& folder) {
  write_file(folder.file(files::kRecord), record_to_json(with_valid_text(record)) + "\n");
}

std::optional<Record> earlier_record(const OutputFolder& folder) {
  const std::filesystem::path path = folder.file(files::kRecord);
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return std::nullopt;
  try {
    return record_from_json(read_file(path), path.string());
  } catch (const IoError&) {
    return std::nullopt;  // a damaged record costs a repetition, nothing else
  }
}

void write_draws(const PosteriorDraws& draws, const OutputFolder& folder) {
  if (draws.size() == 0) {  // whatever lies there belongs to something else
    std::error_code ignored;
    std::filesystem::remove(folder.file(files::kDrawsNpz), ignored);
    std::filesystem::remove(folder.file(files::kDrawsCsv), ignored);
    std::filesystem::remove(folder.file(files::kDrawsNetcdf), ignored);
    return;
  }
  NamedArrays arrays;
  arrays.emplace_back("theta", to_array(draws.theta));
  arrays.emplace_back("log_ratio", NumericArray{.shape = {draws.size()}, .values = draws.log_ratio});
  if (!draws.log_density.empty())
    arrays.emplace_back("log_density", NumericArray{.shape = {draws.size()}, .values = draws.log_density});
  for (const auto& [name, values] : draws.per_draw)
    arrays.emplace_back(name, NumericArray{.shape = {values.size()}, .values = values});
  write_npz(folder.file(files::kDrawsNpz), arrays);
  write_csv(folder.file(files::kDrawsCsv), draws.names, draws.theta);
}

std::optional<PosteriorDraws> earlier_draws(const OutputFolder& folder, const std::optional<Record>& record,
                                            const std::string& key, const std::vector<std::string>& names) {
  if (!record) return std::nullopt;
  const auto text = [&](const char* name) {
    const RecordValue* value = record->find(name);
    const auto* found = value ? std::get_if<std::string>(value) : nullptr;
    return found ? *found : std::string();
  };
  std::error_code code;
  if (text("sampling.key") != key ||
      text("sampling.status") != sampling_status_name(SamplingStatus::complete))
    return std::nullopt;
  if (!std::filesystem::exists(folder.file(files::kDrawsNpz), code) ||
      !std::filesystem::exists(folder.file(files::kDrawsCsv), code) ||
      !std::filesystem::exists(folder.file(files::kDrawsNetcdf), code))
    return std::nullopt;
  const std::vector<std::string> wanted = {"theta", "log_ratio"};
  NamedArrays arrays;
  try {
    arrays = read_npz(folder.file(files::kDrawsNpz), wanted);
  } catch (const IoError&) {
    return std::nullopt;  // damaged: drawn again
  }
  PosteriorDraws draws;
  draws.log_ratio = std::move(arrays[1].second.values);
  draws.theta = to_matrix(std::move(arrays[0].second), folder.file(files::kDrawsNpz).string());
  draws.names = names;
  draws.method = text("sampling.method");
  draws.message = text("sampling.message");
  for (const auto& [name, value] : record->entries()) {
    if (name.starts_with(kSampling)) draws.statistics.set(name.substr(kSampling.size()), value);
  }
  if (draws.theta.cols() != names.size() || draws.log_ratio.size() != draws.theta.rows()) return std::nullopt;
  return draws;
}

void SamplingStage::run(const RunContext& context, CommandResult& result) const {
  const Stopwatch watch;
  const ConditionedPrior conditioned = condition(estimator.prior, read_fixed_parameters(sampling.fix));
  const Posterior posterior = Posterior::from_estimator(estimator, x_o, context).conditioned(conditioned);
  const std::string_view x_bytes(reinterpret_cast<const char*>(x_o.data()), x_o.size() * sizeof(double));
  const std::string key = content_hash(fmt::format(
      "{} {} {} {} {} {} {}", estimator_hash, content_hash(x_bytes), sampling.method, sampling.num_samples,
      context.seed, resolve_isa(context.isa), fmt::join(sampling.fix, " ")));
  std::optional<PosteriorDraws> draws;
  if (resume) draws = earlier_draws(folder, earlier_record(folder), key, estimator.prior.names());
  if (draws) {
    context.log.info("taking over the draws of the earlier run");
  } else {
    context.log.info(fmt::format("sampling {} draws", sampling.num_samples));
    // From here on the record in the folder belongs to no draws: whatever ends the run, earlier ones are not taken for these.
    result.record.set("status", "running");
    write_record(result.record, folder);
    draws = draws_with_facts(posterior, conditioned, sampling, context);
    write_draws(*draws, folder);
    if (draws->size() > 0)
      write_netcdf(folder.file(files::kDrawsNetcdf),
                   draws_groups(*draws, estimator.prior, x_o, result.record));
  }
  add_sampling(result.record, *draws);
  result.record.set("sampling.key", key);
  result.marginals = summarise(*draws);
  add_marginals(result.record, result.marginals);
  write_record(result.record, folder);
  if (sampling.map && draws->status != SamplingStatus::stopped) {
    RunContext rest = context;
    rest.time_limit = std::max(0.0, context.time_limit - watch.seconds());
    add_map(result.record, posterior, conditioned, *draws, rest);
    write_record(result.record, folder);
  }
  // Chains that disagree are a finished run with a bad verdict; all else that is not complete is a partial result.
  if (draws->status == SamplingStatus::chains_disagree) {
    context.log.warning(draws->message);
  } else if (draws->status != SamplingStatus::complete) {
    result.status =
        draws->status == SamplingStatus::stopped ? CommandStatus::stopped : CommandStatus::budget_spent;
    result.message = draws->message;
  }
  if (draws->status == SamplingStatus::no_support) result.status = CommandStatus::failed;
  if (result.status == CommandStatus::stopped || check.level == "none") return;
  context.log.info("checking");
  result.check = quick_check(estimator, x_o, *draws, held_out_theta, held_out_x, context);
  if (context.stop_requested()) {  // half a check is none
    result.check.reset();
    result.status = CommandStatus::stopped;
    result.message = "stopped on request while checking; the draws are complete";
    return;
  }
  add_check(result.record, *result.check);
}

}  // namespace nrec
