#include "experiments/diagnostic_parts.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "experiments/toy_problem.h"
#include "nrec/core/error.h"
#include "nrec/diagnostics/c2st.h"
#include "nrec/inference/sample.h"

namespace nrec {

namespace {

constexpr std::size_t kPairsAtOnce = 1u << 16;  // between two looks at the clock and the stop request
constexpr double kObservedTheta = 1.0;
constexpr double kHistogramReach = 5.0;  // of the noise, beyond the prior
constexpr std::size_t kLeastC2stDraws = 100;
// Posteriors are 0.1 wide: with a step of 0.007 the midpoint rule is good to 1e-3 within 2 noise sds of the prior's bounds, and to
// 1e-2 where x hardly ever is; between points of x log Z is good to 3e-4 for functions like sin 5 x.
constexpr std::size_t kThetaNodes = 512, kXNodes = 513;

constexpr double kHistogramHigh = toy::kBound + kHistogramReach * toy::kNoise;

}  // namespace

std::vector<double> AskedRatio::operator()(std::span<const double> theta, std::span<const double> x) const {
  std::vector<double> values(x.size());
  for (std::size_t first = 0; first < x.size(); first += kPairsAtOnce) {
    go_on();
    const std::size_t n = std::min(kPairsAtOnce, x.size() - first);
    log_ratio_(theta.subspan(first, n), x.subspan(first, n), std::span(values).subspan(first, n));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < std::numeric_limits<double>::infinity()) continue;
    throw DomainError("importance_diagnostic: the log ratio at theta = " + number_text(theta[i]) +
                      ", x = " + number_text(x[i]) + " is " + number_text(values[i]) +
                      "; it must be a number, or -inf for a ratio of 0: mend the ratio, or train it again");
  }
  return values;
}

std::vector<double> AskedRatio::operator()(double theta, std::span<const double> x) const {
  return (*this)(std::vector<double>(x.size(), theta), x);
}

void AskedRatio::go_on() const {
  if (run_.stop_requested()) throw CutShort{ExperimentStatus::stopped};
  if (watch_.seconds() > run_.time_limit) throw CutShort{ExperimentStatus::budget_spent};
}

void AskedRatio::say(const char* what) const {
  run_.log.progress({.stage = "diagnosing", .done = 0, .total = 0, .unit = "", .detail = what});
}

RunContext AskedRatio::rest() const {
  RunContext rest = run_;
  rest.time_limit = std::max(0.0, run_.time_limit - watch_.seconds());
  return rest;
}

std::uint64_t first_row(RowBlock block, std::uint64_t behind) {
  return (std::uint64_t{1} << 61) + ((static_cast<std::uint64_t>(block) + behind) << 40);
}

DensityHistogram density_histogram(std::span<const double> values, std::span<const double> weights,
                                   double low, double high, int bins) {
  DensityHistogram histogram{.low = low, .high = high, .density = {}};
  histogram.density.assign(static_cast<std::size_t>(bins), 0.0);
  const double width = histogram.width();
  double inside = 0.0, total = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double weight = weights.empty() ? 1.0 : weights[i];
    total += weight;
    if (!(values[i] >= low && values[i] <= high)) continue;
    const auto bin = static_cast<std::size_t>((values[i] - low) / width);
    histogram.density[std::min(bin, histogram.density.size() - 1)] += weight;
    inside += weight;
  }
  histogram.outside = total > 0.0 ? (total - inside) / total : 0.0;
  for (double& density : histogram.density) density /= inside * width;  // 0/0 is nan
  return histogram;
}

double effective_sample_size(std::span<const double> weights) {
  double sum = 0.0, squares = 0.0;
  for (const double weight : weights) {
    sum += weight;
    squares += weight * weight;
  }
  return squares > 0.0 ? sum * sum / squares : 0.0;
}

namespace {

/// Mean and sd (n - 1); nan where there are too few values.
std::pair<double, double> mean_and_sd(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0.0, squares = 0.0;
  for (const double value : values) sum += value;
  const double mean = sum / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, values.size() < 2 ? std::nan("") : std::sqrt(squares / (n - 1.0))};
}

/// The posterior that a ratio gives at one x, with `shift` added to its log.
Posterior posterior_at(const AskedRatio& ratio, double x_o, double shift) {
  return Posterior::from_log_ratio(
      toy::prior(), [&ratio, x_o, shift](MatrixView<const double> theta, std::span<double> log_ratio) {
        std::vector<double> thetas(theta.rows);
        for (std::size_t i = 0; i < theta.rows; ++i) thetas[i] = theta(i, 0);
        const std::vector<double> values = ratio(thetas, std::vector<double>(theta.rows, x_o));
        for (std::size_t i = 0; i < values.size(); ++i) log_ratio[i] = values[i] + shift;
      });
}

PosteriorDraws draw(const AskedRatio& ratio, double x_o, double shift, std::int64_t num_draws) {
  SamplingOptions sampling;
  sampling.method = "rejection";
  sampling.num_samples = num_draws;
  // Draws must not depend on how busy a machine is; max_evaluations and the run's own limits end what would not.
  sampling.max_seconds = std::numeric_limits<double>::infinity();
  PosteriorDraws draws = sample_by_rejection(posterior_at(ratio, x_o, shift), sampling, ratio.rest());
  ratio.go_on();
  return draws;
}

void add_moments(std::span<const double> draws, PosteriorComparison& comparison) {
  const auto exact = toy::posterior_moments(comparison.x_o);
  comparison.exact_mean = exact.mean;
  comparison.exact_sd = exact.sd;
  std::tie(comparison.mean, comparison.sd) = mean_and_sd(draws);
}

void add_c2st(const AskedRatio& ratio, const Matrix<double>& draws, std::int64_t most,
              PosteriorComparison& comparison) {
  comparison.num_c2st_draws = std::min(draws.rows(), static_cast<std::size_t>(most));
  if (comparison.num_c2st_draws < kLeastC2stDraws) return;
  ratio.say("C2ST of the posterior draws");
  Matrix<double> exact(comparison.num_c2st_draws, 1);
  toy::posterior(comparison.x_o).sample(ratio.seed(), Stream::reference, 0, exact);
  C2stOptions options;
  options.stop = ratio.stop();
  const C2stSummary summary =
      c2st(exact, draws.view().middle_rows(0, comparison.num_c2st_draws), options, ratio.pool(), ratio.log());
  ratio.go_on();
  comparison.c2st = summary.accuracy;
  comparison.c2st_auc = summary.auc;
}

void add_bias_draws(const AskedRatio& ratio, std::int64_t num_draws, PosteriorComparison& comparison) {
  if (num_draws == 0) return;
  ratio.say("posterior draws with a known bias");
  const PosteriorDraws plain = draw(ratio, comparison.x_o, 0.0, num_draws);
  const PosteriorDraws biased = draw(ratio, comparison.x_o, known_bias(comparison.x_o), num_draws);
  comparison.num_bias_draws = std::min(plain.size(), biased.size());
  for (std::size_t i = 0; i < comparison.num_bias_draws; ++i)
    comparison.num_bias_draws_changed += plain.theta(i, 0) != biased.theta(i, 0);
}

}  // namespace

PosteriorComparison compare_posterior(const AskedRatio& ratio, const ImportanceDiagnosticOptions& options) {
  PosteriorComparison comparison;
  comparison.x_o = toy::observation(kObservedTheta, ratio.seed());
  const PosteriorDraws draws = draw(ratio, comparison.x_o, 0.0, options.num_posterior_draws);
  comparison.num_draws = draws.size();
  comparison.status = sampling_status_name(draws.status);
  comparison.message = draws.message;
  comparison.draws =
      density_histogram(draws.theta.values(), {}, -toy::kBound, toy::kBound, options.posterior_bins);
  Matrix<double> centres(comparison.draws.density.size(), 1);
  for (std::size_t i = 0; i < centres.rows(); ++i) centres(i, 0) = comparison.draws.centre(i);
  comparison.exact.resize(centres.rows());
  toy::posterior(comparison.x_o).log_prob(centres, comparison.exact);
  for (double& density : comparison.exact) density = std::exp(density);
  add_moments(draws.theta.values(), comparison);
  add_bias_draws(ratio, options.num_bias_draws, comparison);
  add_c2st(ratio, draws.theta, options.num_c2st_draws, comparison);
  return comparison;
}

namespace {

/// exp of log weights relative to the largest: for what does not depend on their scale.
std::vector<double> relative_weights(std::vector<double> log_weights) {
  const double top = *std::max_element(log_weights.begin(), log_weights.end());
  for (double& value : log_weights) value = std::isfinite(top) ? std::exp(value - top) : 0.0;
  return log_weights;
}

LikelihoodComparison compare_likelihood(const AskedRatio& ratio, double theta, std::uint64_t number,
                                        const ImportanceDiagnosticOptions& options) {
  LikelihoodComparison comparison{.theta = theta, .simulated = {}, .weighted = {}, .exact = {}};
  std::vector<double> x(static_cast<std::size_t>(options.num_histogram_rows));
  const auto histogram = [&](std::span<const double> weights) {
    return density_histogram(x, weights, -kHistogramHigh, kHistogramHigh, options.likelihood_bins);
  };
  toy::conditional_rows(theta, ratio.seed(), first_row(RowBlock::first_likelihood, 2 * number), x);
  comparison.simulated = histogram({});
  toy::marginal_rows(ratio.seed(), first_row(RowBlock::first_likelihood, 2 * number + 1), x);
  const std::vector<double> weights = relative_weights(ratio(theta, x));
  comparison.weighted = histogram(weights);
  comparison.effective_sample_size = effective_sample_size(weights);
  const DensityHistogram& weighted = comparison.weighted;
  double below = 0.0;
  for (std::size_t i = 0; i < weighted.density.size(); ++i) {
    comparison.exact.push_back(std::exp(toy::log_likelihood(theta, weighted.centre(i))));
    below += weighted.density[i] * weighted.width();
    const double edge = weighted.low + static_cast<double>(i + 1) * weighted.width();
    const double difference = std::fabs(below - toy::likelihood_cdf(theta, edge));
    // Written so that a histogram without weight is nan, not 0.
    if (!(difference <= comparison.largest_cdf_difference)) comparison.largest_cdf_difference = difference;
  }
  return comparison;
}

}  // namespace

std::vector<LikelihoodComparison> compare_likelihoods(const AskedRatio& ratio,
                                                      const ImportanceDiagnosticOptions& options) {
  std::vector<LikelihoodComparison> comparisons;
  std::uint64_t number = 0;
  for (const double theta : {-0.5 * toy::kBound, 0.0, 0.5 * toy::kBound})
    comparisons.push_back(compare_likelihood(ratio, theta, number++, options));
  return comparisons;
}

double NormalisationCurve::operator()(double at) const {
  const auto above = std::upper_bound(x.begin(), x.end(), at);
  if (above == x.begin()) return log_z.front();
  if (above == x.end()) return log_z.back();
  const auto i = static_cast<std::size_t>(above - x.begin());
  const double share = (at - x[i - 1]) / (x[i] - x[i - 1]);
  return log_z[i - 1] + share * (log_z[i] - log_z[i - 1]);
}

HeldOutPairs::HeldOutPairs(const SimulationSet& simulations, const ImportanceDiagnosticOptions& options,
                           std::uint64_t seed) {
  std::vector<std::uint32_t> rows =
      validation_rows(simulations.num_rows(), options.training.validation_fraction, seed);
  if (options.num_information_rows > 0)
    rows.resize(std::min(rows.size(), static_cast<std::size_t>(options.num_information_rows)));
  for (const std::uint32_t row : rows) {
    theta.push_back(simulations.theta(row, 0));
    x.push_back(simulations.x(row, 0));
  }
}

NormalisationCurve normalisation_curve(const AskedRatio& ratio, const HeldOutPairs& held_out) {
  NormalisationCurve curve;
  std::vector<double> theta(kThetaNodes), all_theta, all_x;
  for (std::size_t i = 0; i < kThetaNodes; ++i)
    theta[i] = toy::kBound * ((2.0 * static_cast<double>(i) + 1.0) / static_cast<double>(kThetaNodes) - 1.0);
  for (std::size_t i = 0; i < kXNodes; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(kXNodes - 1);
    curve.x.push_back(kHistogramHigh * (2.0 * share - 1.0));
    all_theta.insert(all_theta.end(), theta.begin(), theta.end());
    all_x.insert(all_x.end(), kThetaNodes, curve.x.back());
  }
  const std::vector<double> log_ratio = ratio(all_theta, all_x);
  for (std::size_t i = 0; i < kXNodes; ++i)
    curve.log_z.push_back(log_mean_exp(std::span(log_ratio).subspan(i * kThetaNodes, kThetaNodes)).value);
  std::vector<double> log_z;
  for (const double x : held_out.x) log_z.push_back(curve(x));
  std::tie(curve.mean, curve.sd) = mean_and_sd(log_z);
  return curve;
}

namespace {

/// Z of each pair from first to last, from prior draws of its own.
void add_normalisations(const AskedRatio& ratio, std::span<const double> x, std::size_t first,
                        std::size_t num_draws, std::vector<LogMeanExp>& z) {
  Matrix<double> theta(x.size() * num_draws, 1);
  toy::prior().sample(ratio.seed(), Stream::check, first_row(RowBlock::information) + first * num_draws,
                      theta);
  std::vector<double> xs;
  for (const double value : x) xs.insert(xs.end(), num_draws, value);
  const std::vector<double> log_ratio = ratio(theta.values(), xs);
  for (std::size_t i = 0; i < x.size(); ++i)
    z.push_back(log_mean_exp(std::span(log_ratio).subspan(i * num_draws, num_draws)));
}

}  // namespace

RatioInformation held_out_information(const AskedRatio& ratio, const HeldOutPairs& held_out,
                                      std::size_t num_draws) {
  const std::vector<double> joint = ratio(held_out.theta, held_out.x);
  std::vector<LogMeanExp> z;
  // As many rows at once as fill a call.
  const std::size_t at_once = std::max<std::size_t>(1, kPairsAtOnce / num_draws);
  const std::span<const double> x = held_out.x;
  for (std::size_t first = 0; first < x.size(); first += at_once)
    add_normalisations(ratio, x.subspan(first, std::min(at_once, x.size() - first)), first, num_draws, z);
  return ratio_information(joint, z);
}

}  // namespace nrec
