#include "training/standardise_data.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nrec/core/error.h"
#include "training/joint_objective.h"
#include "training/objective.h"

namespace nrec {

namespace {

std::string column_list(const std::vector<std::size_t>& columns, const char* name) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(columns.size(), kShown); ++i)
    text += (i ? ", " : "") + std::string(name) + "[" + std::to_string(columns[i]) + "]";
  if (columns.size() > kShown) text += " and " + std::to_string(columns.size() - kShown) + " more";
  return text;
}

Matrix<double> unbounded_rows(const Prior& prior, const Matrix<double>& theta) {
  Matrix<double> unbounded(theta.rows(), prior.dim());
  prior.to_unbounded(theta, unbounded);
  return unbounded;
}

Matrix<double> rows_of(const Matrix<double>& all, std::span<const std::uint32_t> rows) {
  Matrix<double> picked(rows.size(), all.cols());
  for (std::size_t i = 0; i < rows.size(); ++i) std::ranges::copy(all.row(rows[i]), picked.row(i).begin());
  return picked;
}

void refuse_constant_theta(const Prior& prior, const StandardiserReport& report) {
  if (report.constant_columns.empty()) return;
  const std::size_t column = report.constant_columns.front();
  throw DomainError("train: theta column " + std::to_string(column) + " (" + prior.names()[column] +
                    ") is constant; a parameter that never varies cannot be inferred: "
                    "remove it from [parameters] and theta, or simulate it from its prior");
}

/// What the report on all simulations says of x.
void warn_of_columns(const StandardiserReport& report, const TrainingOptions& options, TrainingData& data) {
  if (!report.constant_columns.empty()) {
    data.warnings.push_back("constant in all simulations, so it carries no information: " +
                            column_list(report.constant_columns, "x") +
                            (options.standardise_from == "first_batch" ? "" : " (centred, scale 1)"));
  }
  if (!report.heavy_tailed_columns.empty() && options.standardise_x == "robust") {
    data.warnings.push_back("heavy tails: " + column_list(report.heavy_tailed_columns, "x") +
                            " keep huge values after robust scaling; batch norm suffers from them, so "
                            "consider norm = \"layer\" or a logarithm in the simulator");
  }
  if (!report.heavy_tailed_columns.empty() && options.standardise_x == "independent") {
    data.warnings.push_back("heavy tails (sd over 10 times what the quartiles suggest): " +
                            column_list(report.heavy_tailed_columns, "x") +
                            "; a few huge values set the scale. Consider standardise_x = \"robust\" or a "
                            "logarithm in the simulator");
  }
}

/// Raw theta and x of the mini-batch that training takes first.
std::pair<Matrix<double>, Matrix<double>> first_batch(const Prior& prior, const SimulationSet& simulations,
                                                      const TrainingOptions& options, const RunContext& run,
                                                      const Simulator* simulator, const TrainingData& data) {
  if (options.regime == "joint") {
    check_joint_simulator(simulator, prior.dim(), simulations.dim_x());
    JointRows rows(data.batch_size, prior.dim(), simulations.dim_x());
    rows.simulate(prior, *simulator, simulations.num_rows(), run);
    return {std::move(rows.theta), std::move(rows.x)};
  }
  EpochOrder order(data.training, data.batch_size, run.seed);
  const std::span<const std::uint32_t> rows = order.batch(0);
  return {rows_of(simulations.theta, rows), rows_of(simulations.x, rows)};
}

/// Replaces the standardisers by those of the first mini-batch.
void standardise_from_first_batch(const Prior& prior, const Matrix<double>& theta, const Matrix<double>& x,
                                  StandardiserMethod method, const StandardiserReport& of_all,
                                  TrainingData& data) {
  StandardiserReport theta_report, report;
  data.theta_standardiser = fit_standardiser(unbounded_rows(prior, theta), StandardiserMethod::independent,
                                             theta_report, ConstantColumns::tiny_scale);
  data.x_standardiser = fit_standardiser(x, method, report, ConstantColumns::tiny_scale);
  std::vector<std::size_t> only_here;
  std::ranges::set_difference(report.constant_columns, of_all.constant_columns,
                              std::back_inserter(only_here));
  if (only_here.empty() || method == StandardiserMethod::none) return;
  data.warnings.push_back(
      "constant in the first mini-batch but not in all simulations: " + column_list(only_here, "x") +
      " is divided by 1e-7 and becomes huge elsewhere, as in the published experiments; "
      "standardise_from = \"training\" takes the statistics of all simulations");
}

}  // namespace

void standardise(const Prior& prior, const SimulationSet& simulations, const TrainingOptions& options,
                 const RunContext& run, const Simulator* simulator, TrainingData& data) {
  const Matrix<double> unbounded = unbounded_rows(prior, simulations.theta);
  const StandardiserMethod method = standardiser_method(options.standardise_x);
  StandardiserReport theta_report, report;
  data.theta_standardiser = fit_standardiser(unbounded, StandardiserMethod::independent, theta_report);
  refuse_constant_theta(prior, theta_report);
  data.x_standardiser = fit_standardiser(simulations.x, method, report);
  warn_of_columns(report, options, data);
  if (options.standardise_from == "first_batch") {
    const auto [theta, x] = first_batch(prior, simulations, options, run, simulator, data);
    standardise_from_first_batch(prior, theta, x, method, report, data);
  }
  data.theta = Matrix<float>(simulations.num_rows(), prior.dim());
  data.theta_standardiser.apply(unbounded, data.theta);
  data.x = Matrix<float>(simulations.num_rows(), simulations.dim_x());
  data.x_standardiser.apply(simulations.x, data.x);
}

}  // namespace nrec
