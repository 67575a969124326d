#include "nrec/inference/posterior.h"

#include <cmath>
#include <limits>

#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/networks/pair_step.h"
#include "training/encode_theta.h"

namespace nrec {

namespace {
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
}

Posterior::Posterior(Prior prior, LogRatio log_ratio)
    : prior_(std::move(prior)),
      function_(std::move(log_ratio)),
      num_non_finite_(std::make_shared<std::size_t>(0)) {}

Posterior Posterior::from_log_ratio(Prior prior, LogRatio log_ratio) {
  if (!log_ratio) throw ConfigError("posterior: the log ratio function is empty");
  return Posterior(std::move(prior), std::move(log_ratio));
}

Posterior Posterior::from_estimator(const RatioEstimator& estimator, std::span<const double> x_o,
                                    const RunContext& run) {
  const std::vector<float> x = estimator.encode_x(x_o);
  const auto evaluator = std::make_shared<PairEvaluator>(estimator.network, x, run.isa, run.pool);
  const auto shared = std::make_shared<RatioEstimator>(estimator);
  ThreadPool* pool = &run.pool;
  const auto log_r = [evaluator, shared, pool](MatrixView<const double> theta, std::span<double> log_ratio) {
    Matrix<float> encoded(theta.rows, theta.cols);
    std::vector<float> logits(theta.rows);
    encode_theta(shared->prior, shared->theta_standardiser, theta, encoded, *pool);
    (*evaluator)(encoded, logits);
    for (std::size_t i = 0; i < logits.size(); ++i) log_ratio[i] = logits[i];
  };
  if (!estimator.success || !estimator.success->network) return Posterior(estimator.prior, log_r);
  const auto success = std::make_shared<SuccessEvaluator>(*estimator.success, estimator.prior, run);
  const double log_rate = std::log(estimator.success->rate());
  return Posterior(estimator.prior,
                   [log_r, success, log_rate](MatrixView<const double> theta, std::span<double> log_ratio) {
                     std::vector<double> log_p(theta.rows);
                     (*success)(theta, log_p);
                     log_r(theta, log_ratio);
                     for (std::size_t i = 0; i < log_p.size(); ++i) log_ratio[i] += log_p[i] - log_rate;
                   });
}

void Posterior::log_ratio(MatrixView<const double> theta, std::span<double> log_ratio) const {
  if (theta.cols != prior_.dim() || log_ratio.size() != theta.rows) {
    throw ShapeError("posterior: theta is [" + std::to_string(theta.rows) + ", " +
                     std::to_string(theta.cols) + "] with room for " + std::to_string(log_ratio.size()) +
                     " values; it must have " + std::to_string(prior_.dim()) +
                     " columns and one value a row");
  }
  function_(theta, log_ratio);
  for (double& value : log_ratio) {
    if (std::isfinite(value)) continue;
    if (value != kMinusInfinity) ++*num_non_finite_;
    value = kMinusInfinity;
  }
}

void Posterior::log_density(MatrixView<const double> theta, std::span<double> log_density) const {
  std::vector<double> log_prior(theta.rows);
  prior_.log_prob(theta, log_prior);
  log_ratio(theta, log_density);
  for (std::size_t i = 0; i < theta.rows; ++i)
    log_density[i] = log_prior[i] == kMinusInfinity ? kMinusInfinity : log_density[i] + log_prior[i];
}

std::vector<OutsideColumn> columns_outside(const RatioEstimator& estimator, std::span<const double> x_o) {
  std::vector<OutsideColumn> columns;
  for (std::size_t j = 0; j < x_o.size() && j < estimator.x_low.size(); ++j) {
    if (x_o[j] < estimator.x_low[j] || x_o[j] > estimator.x_high[j])
      columns.push_back({j, x_o[j], estimator.x_low[j], estimator.x_high[j]});
  }
  return columns;
}

std::string outside_warning(const std::vector<OutsideColumn>& columns) {
  if (columns.empty()) return "";
  constexpr std::size_t kShown = 5;
  std::string text = "the observation is outside the range of all simulations in " +
                     std::to_string(columns.size()) + (columns.size() == 1 ? " column: " : " columns: ");
  for (std::size_t i = 0; i < std::min(columns.size(), kShown); ++i) {
    const OutsideColumn& c = columns[i];
    text += (i ? ", " : "") + std::string("x_o[") + std::to_string(c.column) + "] = " + number_text(c.value) +
            " (simulated " + number_text(c.low) + " to " + number_text(c.high) + ")";
  }
  if (columns.size() > kShown) text += " and " + std::to_string(columns.size() - kShown) + " more";
  return text +
         "; the network extrapolates there: check the order and units of x_o, or widen the prior or the "
         "simulator";
}

}  // namespace nrec
