#include <algorithm>
#include <cmath>

#include "nrec/core/error.h"
#include "nrec/experiments/importance_diagnostic.h"
#include "nrec/losses/contrastive_loss.h"

namespace nrec {

namespace {

constexpr double kMostRows = 1e8;
constexpr int kPublishedClasses = 9, kPublishedAtoms = 10;

/// The rule that the present value of an option breaks, or "".
std::string broken_rule(const OptionEntry& entry) {
  const OptionValue value = entry.current();
  bool is_fine = true;
  if (const auto* whole = std::get_if<std::int64_t>(&value))
    is_fine = entry.interval.contains(static_cast<double>(*whole));
  if (const auto* real = std::get_if<double>(&value)) is_fine = entry.interval.contains(*real);
  if (const auto* word = std::get_if<std::string>(&value))
    is_fine = entry.choices.empty() || std::ranges::find(entry.choices, *word) != entry.choices.end();
  if (is_fine) return "";
  return " " + entry.name + " = " + option_value_text(value) + " must be " + entry.rule_text() + ";";
}

void describe_rows(OptionTable& table, ImportanceDiagnosticOptions& options) {
  table.add("", "num_simulations", &options.num_simulations, {.low = 10, .high = kMostRows},
            "simulations that the network is trained and validated on");
  table.add("", "num_posterior_draws", &options.num_posterior_draws, {.low = 1, .high = kMostRows},
            "draws from the posterior at an observation simulated at theta = 1");
  table.add("", "num_c2st_draws", &options.num_c2st_draws, {.low = 1, .high = kMostRows},
            "of these, how many are compared with as many exact ones by C2ST");
  table.add("", "num_bias_draws", &options.num_bias_draws, {.low = 0, .high = kMostRows},
            "draws made twice, without and with sin(5 x) added to the log ratio");
  table.add("", "posterior_bins", &options.posterior_bins, {.low = 1, .high = 1e6},
            "bins of the posterior's histogram");
  table.add("", "num_histogram_rows", &options.num_histogram_rows, {.low = 2, .high = kMostRows},
            "rows of every histogram over x");
  table.add("", "likelihood_bins", &options.likelihood_bins, {.low = 1, .high = 1e6},
            "bins of the histograms over x");
}

void describe_classifier(OptionTable& table, ImportanceDiagnosticOptions& options) {
  table.add("", "num_classifier_rows", &options.num_classifier_rows, {.low = 20, .high = kMostRows},
            "rows of each label that the classifier is trained with");
  table.add("", "num_roc_rows", &options.num_roc_rows, {.low = 2, .high = kMostRows},
            "fresh rows of each label for the ROC curve");
  table.add("", "classifier_epochs", &options.classifier_epochs, {.low = 1}, "epochs of the classifier");
  table.add("", "classifier_batch_rows", &options.classifier_batch_rows, {.low = 1},
            "rows of each label in its mini-batches");
  table.add("", "classifier_learning_rate", &options.classifier_learning_rate,
            {.low = 0, .high = 1, .low_open = true}, "its step size of Adam");
  table.add("", "num_information_rows", &options.num_information_rows, {.low = 0, .high = kMostRows},
            "validation rows for information and normalisation; 0: all");
  table.add("", "num_information_draws", &options.num_information_draws, {.low = 2, .high = 1e6},
            "prior draws of each of them");
}

}  // namespace

void describe(OptionTable& table, ImportanceDiagnosticOptions& options) {
  describe_rows(table, options);
  describe_classifier(table, options);
  describe(table, options.network);
  describe(table, options.training);
}

void ImportanceDiagnosticOptions::validate() const {
  ImportanceDiagnosticOptions copy = *this;
  OptionTable table;
  describe(table, copy);
  std::string broken;
  for (const OptionEntry& entry : table.entries()) broken += broken_rule(entry);
  if (broken.empty()) return;
  broken.pop_back();
  throw ConfigError("importance_diagnostic:" + broken);
}

ImportanceDiagnosticOptions published_importance_diagnostic(std::string_view loss) {
  ImportanceDiagnosticOptions options;
  const LossKind kind = loss_kind(loss);
  options.training.loss = loss_name(kind);
  options.training.num_classes = kind == LossKind::nre_a   ? 1
                                 : kind == LossKind::nre_b ? kPublishedAtoms
                                                           : kPublishedClasses;
  return options;
}

double known_bias(double x) { return std::sin(5.0 * x); }

std::string_view experiment_status_name(ExperimentStatus status) {
  switch (status) {
    case ExperimentStatus::done:
      return "done";
    case ExperimentStatus::stopped:
      return "stopped";
    case ExperimentStatus::budget_spent:
      return "budget spent";
    case ExperimentStatus::failed:
      break;
  }
  return "failed";
}

}  // namespace nrec
