#include "experiments/importance_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nrec/core/error.h"
#include "nrec/core/stop.h"
#include "nrec/experiments/importance_diagnostic.h"
#include "nrec/experiments/importance_tables.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

constexpr double kPassing = 0.53, kFailing = 0.55;  // weighted areas under the curve
constexpr double kOverlap = 0.55;                   // C2ST of posteriors that agree

ImportanceDiagnosticOptions diagnostic_options(const ExperimentOptions& options, const std::string& loss) {
  ImportanceDiagnosticOptions diagnostic = published_importance_diagnostic(loss);
  if (options.size == "quick") {
    diagnostic.network.hidden_features = 32;
    diagnostic.num_simulations = 4000;
    diagnostic.training.max_num_epochs = 10;
    diagnostic.training.learning_rate = 1e-3;
    diagnostic.num_posterior_draws = 10000;
    diagnostic.num_c2st_draws = 1000;
    diagnostic.num_histogram_rows = 20000;
    diagnostic.likelihood_bins = 200;
    diagnostic.num_classifier_rows = 2000;
    diagnostic.num_roc_rows = 10000;
    diagnostic.classifier_epochs = 20;
  }
  if (options.faithful && loss != "nre-b") {
    diagnostic.training.gradients = "accumulate";
    diagnostic.training.standardise_from = "first_batch";
    diagnostic.training.contrast = "independent";
  }
  OptionTable table;
  describe(table, diagnostic.network);
  describe(table, diagnostic.training);
  for (const OptionOverride& flag : options.settings) {
    if (flag.section == "training" &&
        (flag.name == "loss" || flag.name == "regime" || flag.name == "gamma" || flag.name == "num_classes"))
      throw UsageError(flag.where + ": is what this experiment compares or holds; leave it out");
    if (flag.section != "sampling") apply(flag, table);
  }
  return diagnostic;
}

double area(const ImportanceDiagnosticResult& result, const char* weights) {
  for (const RocComparison& roc : result.rocs) {
    if (roc.weights == weights) return roc.roc.auc;
  }
  return std::nan("");
}

std::vector<double> of_loss(const std::vector<ImportanceDiagnosticResult>& results, const std::string& loss,
                            double (*value)(const ImportanceDiagnosticResult&)) {
  std::vector<double> values;
  for (const ImportanceDiagnosticResult& result : results) {
    if (result.ratio == loss && std::isfinite(value(result))) values.push_back(value(result));
  }
  return values;
}

double median(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

std::string numbers(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(fmt::format("{:.3f}", value));
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

double weighted_area(const ImportanceDiagnosticResult& result) { return area(result, "weighted"); }
double biased_area(const ImportanceDiagnosticResult& result) { return area(result, "biased"); }
double plain_area(const ImportanceDiagnosticResult& result) { return area(result, "unweighted"); }
double posterior_c2st(const ImportanceDiagnosticResult& result) { return result.posterior.c2st; }

std::vector<Claim> importance_claims(const std::vector<ImportanceDiagnosticResult>& results) {
  std::vector<Claim> claims;
  const std::vector<double> c = of_loss(results, "nre-c", weighted_area),
                            b = of_loss(results, "nre-b", weighted_area);
  const bool has_c = !c.empty(), has_b = !b.empty();
  claims.push_back(claim(
      "NRE-C passes the diagnostic: weighted area under the curve at most 0.53 for every seed",
      !c.empty() && *std::max_element(c.begin(), c.end()) <= kPassing, has_c, numbers(c), "about 0.520"));
  claims.push_back(claim("NRE-B fails it: above 0.55 in the median over seeds", median(b) > kFailing, has_b,
                         numbers(b) + fmt::format("; median {:.3f}", median(b)), "about 0.586"));
  const auto all_below = [](const std::vector<double>& values, double bound) {
    return std::all_of(values.begin(), values.end(), [bound](double value) { return value <= bound; });
  };
  std::vector<double> posteriors = of_loss(results, "nre-c", posterior_c2st);
  const std::vector<double> of_b = of_loss(results, "nre-b", posterior_c2st);
  posteriors.insert(posteriors.end(), of_b.begin(), of_b.end());
  claims.push_back(claim("the posteriors of both overlap with the true one: C2ST at most 0.55",
                         all_below(posteriors, kOverlap), !posteriors.empty(), numbers(posteriors)));
  const std::vector<double> biased = of_loss(results, "nre-c", biased_area);
  claims.push_back(claim("a bias sin(5 x) that leaves the posterior as it is fails the diagnostic",
                         !biased.empty() && *std::min_element(biased.begin(), biased.end()) > kPassing,
                         !biased.empty(), numbers(biased)));
  const std::vector<double> plain = of_loss(results, "nre-c", plain_area);
  claims.push_back(claim("the classifier has power: without weights its area is near the best possible 0.954",
                         !plain.empty() && *std::min_element(plain.begin(), plain.end()) > 0.94,
                         !plain.empty(), numbers(plain), "0.954"));
  return claims;
}

std::vector<double> centres(const DensityHistogram& histogram) {
  std::vector<double> x;
  for (std::size_t i = 0; i < histogram.density.size(); ++i) x.push_back(histogram.centre(i));
  return x;
}

/// Panels of one result: posterior, three likelihoods, curves.
void add_panels(const ImportanceDiagnosticResult& result, int colour, const std::string& label,
                std::vector<Panel>& panels) {
  const std::vector<double> theta = centres(result.posterior.draws);
  if (panels[0].series.empty())
    panels[0].series.push_back({.label = "exact",
                                .x = theta,
                                .y = result.posterior.exact,
                                .style = SeriesStyle::dashed,
                                .colour = 7});
  panels[0].series.push_back(
      {.label = label, .x = theta, .y = result.posterior.draws.density, .colour = colour});
  for (std::size_t i = 0; i < result.likelihoods.size() && i < 3; ++i) {
    const LikelihoodComparison& one = result.likelihoods[i];
    const std::vector<double> x = centres(one.weighted);
    std::vector<Series>& series = panels[1 + i].series;
    if (series.empty())
      series.push_back({.label = "exact", .x = x, .y = one.exact, .style = SeriesStyle::dashed, .colour = 7});
    series.push_back({.label = label, .x = x, .y = one.weighted.density, .colour = colour});
  }
  for (const RocComparison& roc : result.rocs) {
    if (roc.weights != "weighted") continue;
    Series curve{
        .label = fmt::format("{} {:.3f}", label, roc.roc.auc), .y = roc.roc.true_positive, .colour = colour};
    for (std::size_t i = 0; i < curve.y.size(); ++i)  // at equal steps from 0 to 1
      curve.x.push_back(static_cast<double>(i) / static_cast<double>(curve.y.size() - 1));
    panels[4].series.push_back(std::move(curve));
  }
}

Figure importance_panels(const std::vector<ImportanceDiagnosticResult>& results) {
  Figure figure{.title = "Importance-sampling diagnostic", .columns = 3};
  figure.panels = {
      {.title = "posterior", .x_label = "theta", .y_label = "density"},
      {.title = "p(x | theta = -sqrt(3)/2)", .x_label = "x", .y_label = "density"},
      {.title = "p(x | theta = 0)", .x_label = "x", .y_label = "density"},
      {.title = "p(x | theta = sqrt(3)/2)", .x_label = "x", .y_label = "density"},
      {.title = "weighted ROC at theta = 1", .x_label = "false positives", .y_label = "true positives"}};
  for (std::size_t i = 1; i <= 3; ++i) {
    const double theta = std::sqrt(3.0) / 2.0 * (static_cast<double>(i) - 2.0);
    figure.panels[i].x_range = {theta - 1.0, theta + 1.0};
  }
  figure.panels[4].x_range = figure.panels[4].y_range = {0.0, 1.0};
  bool has[2] = {false, false};  // the first seed of each is drawn
  for (const ImportanceDiagnosticResult& result : results) {
    const int is_b = result.ratio == "nre-b";
    if (has[is_b] || result.status != ExperimentStatus::done) continue;
    has[is_b] = true;
    add_panels(result, is_b ? 1 : 0, is_b ? "NRE-B" : "NRE-C", figure.panels);
  }
  figure.panels[4].series.push_back(
      {.label = "chance", .x = {0.0, 1.0}, .y = {0.0, 1.0}, .style = SeriesStyle::dashed, .colour = 7});
  return figure;
}

Findings importance_findings(const std::vector<ImportanceDiagnosticResult>& results) {
  const ImportanceTables tables = importance_tables(results);
  return {.tables = {{"", tables.summary},
                     {"_posterior", tables.posterior},
                     {"_likelihood", tables.likelihood},
                     {"_roc", tables.roc},
                     {"_normalisation", tables.normalisation}},
          .figure = importance_panels(results),
          .claims = importance_claims(results)};
}

}  // namespace

ImportanceFigure importance_figure(const ExperimentOptions& options, const fs::path& folder,
                                   const RunContext& asked) {
  ImportanceFigure figure;
  std::vector<ImportanceDiagnosticResult> results;
  const Stopwatch watch;
  const std::vector<std::int64_t> seeds = experiment_seeds(options);
  for (const std::int64_t seed : seeds) {
    for (const char* loss : {"nre-c", "nre-b"}) {
      RunContext run = {.pool = asked.pool,
                        .seed = static_cast<std::uint64_t>(seed),
                        .isa = asked.isa,
                        .log = asked.log,
                        .stop = asked.stop,
                        .time_limit = asked.time_limit - watch.seconds()};
      const fs::path place =
          folder / fmt::format("importance_{}{}", options.size, options.faithful ? "_faithful" : "");
      results.push_back(run_importance_diagnostic(diagnostic_options(options, loss), run, place));
      const ImportanceDiagnosticResult& last = results.back();
      if (last.status == ExperimentStatus::done) continue;
      if (last.status == ExperimentStatus::failed) {
        asked.log.warning(fmt::format("{} seed {}: {}", loss, seed, last.message));
        continue;
      }
      figure.status =
          last.status == ExperimentStatus::stopped ? CommandStatus::stopped : CommandStatus::budget_spent;
      results.pop_back();  // the one that was cut off
      figure.message = fmt::format("{} of {} networks are done", results.size(), 2 * seeds.size());
      if (!results.empty()) figure.findings = importance_findings(results);
      return figure;
    }
  }
  figure.findings = importance_findings(results);
  return figure;
}

}  // namespace nrec
