#include "commands/results.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "commands/failures.h"
#include "core/utf8_text.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"
#include "nrec/kernels/dispatch.h"

namespace nrec {

namespace {

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
  record.set("precision", precision_of(run.isa));
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
  set("step_seconds", summary.step_seconds);
  set("validation_seconds", summary.validation_seconds);
  set("warnings", RecordValue(summary.warnings));
  if (estimator && estimator->success) {
    set("success.message", summary.success_message);
    set("success.num_epochs", summary.success_epochs);
    set("success.seconds", summary.success_seconds);
    record.merge("training.success.", success_record(*estimator->success));
  }
  if (!estimator) return;
  const auto set_history = [&](const char* name, double EpochRecord::*column) {
    std::vector<double> values;
    for (const EpochRecord& epoch : estimator->history) values.push_back(epoch.*column);
    set(name, RecordValue(values));
  };
  set_history("history.training_loss", &EpochRecord::training_loss);
  set_history("history.validation_loss", &EpochRecord::validation_loss);
  set_history("history.nre_a_loss", &EpochRecord::nre_a_loss);
  const EpochRecord& best = estimator->history[static_cast<std::size_t>(estimator->best_epoch) - 1];
  set("mean_ratio", best.mean_ratio);
  set("mean_log_z", best.mean_log_z);
  set("sd_log_z", best.sd_log_z);
  set("i0", best.i0);
  set("i1", best.i1);
  set("mean_log_ratio", best.mean_log_ratio);
  set("nre_a_loss", best.nre_a_loss);
  set("kld", best.kld);
}

Record marginals_record(const std::vector<MarginalSummary>& marginals) {
  Record record;
  const auto column = [&](const char* name, double MarginalSummary::*member) {
    std::vector<double> values;
    for (const MarginalSummary& marginal : marginals) values.push_back(marginal.*member);
    record.set(name, RecordValue(values));
  };
  column("mean", &MarginalSummary::mean);
  column("sd", &MarginalSummary::sd);
  column("quantile05", &MarginalSummary::quantile05);
  column("quantile50", &MarginalSummary::quantile50);
  column("quantile95", &MarginalSummary::quantile95);
  column("ess", &MarginalSummary::ess);
  column("mcse_mean", &MarginalSummary::mcse_mean);
  column("mcse_sd", &MarginalSummary::mcse_sd);
  return record;
}

void add_marginals(Record& record, const std::vector<MarginalSummary>& marginals) {
  std::vector<std::string> names;
  for (const MarginalSummary& marginal : marginals) names.push_back(marginal.name);
  record.set("marginals.name", RecordValue(names));
  record.merge("marginals.", marginals_record(marginals));
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

std::optional<Record> readable_record(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return std::nullopt;
  try {
    return record_from_json(read_file(path), path.string());
  } catch (const IoError&) {
    return std::nullopt;  // a damaged record costs a repetition, nothing else
  }
}

std::optional<Record> earlier_record(const OutputFolder& folder) {
  return readable_record(folder.file(files::kRecord));
}

}  // namespace nrec
