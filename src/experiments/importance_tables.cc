#include "nrec/experiments/importance_tables.h"

#include <cmath>
#include <limits>

#include "nrec/core/options.h"
#include "nrec/io/file.h"

namespace nrec {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string cell(double value) { return std::isnan(value) ? std::string() : number_text(value); }

/// RFC 4180: only texts that need it are quoted.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string cell(const RecordValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return cell(*text);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "1" : "0";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  return cell(std::get<double>(value));
}

std::string key(const ImportanceDiagnosticResult& result) {
  return cell(result.ratio) + "," + std::to_string(result.seed);
}

void add_training(const ImportanceDiagnosticResult& result, Record& record) {
  const DiagnosticTraining training = result.training.value_or(DiagnosticTraining{});
  record.set("num_classes", result.num_classes);
  record.set("gamma", result.gamma);
  record.set("training_status", training.status);
  record.set("num_epochs", training.num_epochs);
  record.set("best_epoch", training.best_epoch);
  record.set("best_validation_loss", training.best_validation_loss);
}

void add_posterior(const PosteriorComparison& posterior, Record& record) {
  record.set("x_o", posterior.x_o);
  record.set("num_draws", posterior.num_draws);
  record.set("sampling_status", posterior.status);
  record.set("posterior_mean", posterior.mean);
  record.set("exact_posterior_mean", posterior.exact_mean);
  record.set("posterior_sd", posterior.sd);
  record.set("exact_posterior_sd", posterior.exact_sd);
  record.set("c2st", posterior.c2st);
  record.set("c2st_auc", posterior.c2st_auc);
  record.set("num_c2st_draws", posterior.num_c2st_draws);
  record.set("num_bias_draws", posterior.num_bias_draws);
  record.set("num_bias_draws_changed", posterior.num_bias_draws_changed);
}

void add_likelihoods(const ImportanceDiagnosticResult& result, Record& record) {
  const char* names[] = {"low", "middle", "high"};
  for (std::size_t i = 0; i < std::size(names); ++i) {
    const bool has = i < result.likelihoods.size();
    const std::string name = std::string("likelihood_") + names[i];
    record.set(name + "_cdf_difference", has ? result.likelihoods[i].largest_cdf_difference : kNan);
    record.set(name + "_effective_sample_size", has ? result.likelihoods[i].effective_sample_size : kNan);
  }
}

void add_rocs(const ImportanceDiagnosticResult& result, Record& record) {
  for (const char* weights : {"weighted", "unweighted", "normalised", "biased"}) {
    RocComparison none;
    none.roc.auc = none.roc.standard_error = none.effective_sample_size = kNan;
    const RocComparison* found = &none;
    for (const RocComparison& roc : result.rocs) {
      if (roc.weights == weights) found = &roc;
    }
    const std::string name = std::string("auc_") + weights;
    record.set(name, found->roc.auc);
    record.set(name + "_se", found->roc.standard_error);
    record.set(name + "_effective_sample_size", found->effective_sample_size);
  }
}

void add_information(const ImportanceDiagnosticResult& result, Record& record) {
  const RatioInformation& information = result.information;
  const bool has = information.num_rows > 0;
  const auto set = [&](const char* name, double value) { record.set(name, has ? value : kNan); };
  record.set("information_rows", information.num_rows);
  set("mean_log_ratio", information.mean_log_ratio);
  set("mean_log_z", information.mean_log_z);
  set("mean_log_z_se", information.mean_log_z_se);
  set("sd_log_z", information.sd_log_z);
  record.set("normalisation_mean_log_z", result.normalisation.mean);
  record.set("normalisation_sd_log_z", result.normalisation.sd);
  set("mean_ratio", information.mean_ratio);
  set("mean_ratio_se", information.mean_ratio_se);
  set("i0", information.i0);
  set("i0_se", information.i0_se);
  set("i0_bias", information.i0_bias);
  set("i1", information.i1);
  set("i1_se", information.i1_se);
  record.set("exact_information", result.exact_information);
}

std::string summary_header() {
  const Record record = importance_record({});
  std::string header;
  for (const auto& [name, value] : record.entries()) header += (header.empty() ? "" : ",") + name;
  return header + "\n";
}

std::string summary_row(const ImportanceDiagnosticResult& result) {
  const Record record = importance_record(result);
  std::string row;
  for (const auto& [name, value] : record.entries()) row += (row.empty() ? "" : ",") + cell(value);
  return row + "\n";
}

std::string posterior_rows(const ImportanceDiagnosticResult& result) {
  const PosteriorComparison& posterior = result.posterior;
  std::string rows;
  for (std::size_t i = 0; i < posterior.draws.density.size(); ++i)
    rows += key(result) + "," + cell(posterior.draws.centre(i)) + "," + cell(posterior.draws.density[i]) +
            "," + cell(posterior.exact[i]) + "\n";
  return rows;
}

std::string likelihood_rows(const ImportanceDiagnosticResult& result) {
  std::string rows;
  for (const LikelihoodComparison& likelihood : result.likelihoods) {
    for (std::size_t i = 0; i < likelihood.exact.size(); ++i)
      rows += key(result) + "," + cell(likelihood.theta) + "," + cell(likelihood.weighted.centre(i)) + "," +
              cell(likelihood.simulated.density[i]) + "," + cell(likelihood.weighted.density[i]) + "," +
              cell(likelihood.exact[i]) + "\n";
  }
  return rows;
}

std::string roc_rows(const ImportanceDiagnosticResult& result) {
  std::string rows;
  for (const RocComparison& comparison : result.rocs) {
    const std::vector<double>& curve = comparison.roc.true_positive;
    for (std::size_t i = 0; i < curve.size(); ++i)
      rows += key(result) + "," + comparison.weights + "," +
              cell(static_cast<double>(i) / static_cast<double>(curve.size() - 1)) + "," + cell(curve[i]) +
              "\n";
  }
  return rows;
}

std::string normalisation_rows(const ImportanceDiagnosticResult& result) {
  std::string rows;
  for (std::size_t i = 0; i < result.normalisation.x.size(); ++i)
    rows += key(result) + "," + cell(result.normalisation.x[i]) + "," + cell(result.normalisation.log_z[i]) +
            "\n";
  return rows;
}

}  // namespace

Record importance_record(const ImportanceDiagnosticResult& result) {
  Record record;
  record.set("ratio", result.ratio);
  record.set("seed", RecordValue(static_cast<std::int64_t>(result.seed)));
  record.set("status", experiment_status_name(result.status));
  record.set("message", result.message);
  add_training(result, record);
  add_posterior(result.posterior, record);
  add_likelihoods(result, record);
  add_rocs(result, record);
  add_information(result, record);
  record.set("training_seconds", result.training ? result.training->seconds : kNan);
  // Then the seconds are those of the last call only.
  record.set("training_was_resumed", result.training && result.training->was_resumed);
  record.set("sampling_seconds", result.sampling_seconds);
  record.set("diagnostic_seconds", result.diagnostic_seconds);
  return record;
}

ImportanceTables importance_tables(std::span<const ImportanceDiagnosticResult> results) {
  ImportanceTables tables{
      .summary = summary_header(),
      .posterior = "ratio,seed,theta,density,exact_density\n",
      .likelihood = "ratio,seed,theta,x,simulated_density,weighted_density,exact_density\n",
      .roc = "ratio,seed,weights,false_positive,true_positive\n",
      .normalisation = "ratio,seed,x,log_z\n"};
  for (const ImportanceDiagnosticResult& result : results) {
    tables.summary += summary_row(result);
    tables.posterior += posterior_rows(result);
    tables.likelihood += likelihood_rows(result);
    tables.roc += roc_rows(result);
    tables.normalisation += normalisation_rows(result);
  }
  return tables;
}

void write_importance_tables(const ImportanceTables& tables, const std::filesystem::path& folder) {
  write_file(folder / "posterior.csv", tables.posterior);
  write_file(folder / "likelihood.csv", tables.likelihood);
  write_file(folder / "roc.csv", tables.roc);
  write_file(folder / "normalisation.csv", tables.normalisation);
  write_file(folder / "summary.csv", tables.summary);  // last: when it is there, the others are
}

}  // namespace nrec
