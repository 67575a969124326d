#include "nrec/tasks/reference_posterior.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "catalogue.h"
#include "nrec/core/error.h"
#include "t_mixture.h"

namespace nrec {
namespace {

using tasks::kMinusInfinity;
using tasks::TMixture;

constexpr std::size_t kBlock = 256;       // candidates of one task of the pool
constexpr double kPriorShare = 0.1;       // of the candidates, so that no weight exceeds ten likelihoods
constexpr std::size_t kAdaptRows = 4000;  // candidates of one tempering step
constexpr std::size_t kMostAdaptRows = 100'000;
constexpr double kWantedEss = 0.1;            // share of them that a step keeps as effective sample size
constexpr std::uint64_t kLastStep = 60;       // the last candidates; tempering ends before
constexpr int kFinalFits = 3;                 // with the whole likelihood
constexpr std::size_t kPilotRows = 20000;     // of the candidates that set the bound
constexpr double kClippedMass = 2.5e-4;       // above the bound
constexpr std::size_t kEvidenceRows = 10000;  // where draws are exact
constexpr std::size_t kFitRows = 3000;        // points that a mixture is fitted to
// Nats below the lowest density of kAdaptRows prior draws: less than 1e-13 of the prior's mass lies there.
constexpr double kTail = 30.0;
constexpr double kPilotEss = 8000.0;  // of the candidates that set the bound
constexpr std::size_t kMostPilotRows = 640'000;
constexpr std::size_t kMostCandidates = 5'000'000;
constexpr std::uint64_t kRowsPerStep = std::uint64_t{1} << 32;  // row numbers of random streams of one step

// Many components follow bent posteriors; in many dimensions there are too few points for them.
std::size_t components_for(std::size_t dim) { return dim <= 5 ? 24 : 2; }

/// Candidates with their weights.
struct Candidates {
  Matrix<double> u;
  Matrix<double> theta;
  std::vector<double> log_likelihood;
  std::vector<double> log_prior;      // density in unbounded space
  std::vector<double> log_candidate;  // density they were drawn from
};

double log_add(double a, double b) {
  const double high = std::max(a, b);
  return high == kMinusInfinity ? high : high + std::log1p(std::exp(std::min(a, b) - high));
}

class Maker {
 public:
  Maker(const Task& task, std::span<const double> x_o, std::uint64_t seed, ThreadPool& pool,
        const StopRequest* stop)
      : task_(task),
        x_o_(x_o),
        prior_(task.prior().without_walls()),
        dim_(task.dim_theta()),
        seed_(seed),
        pool_(pool),
        stop_(stop) {
    Matrix<double> theta(kAdaptRows, dim_), u(kAdaptRows, dim_);
    std::vector<double> log_prior(kAdaptRows), log_jacobian(kAdaptRows);
    prior_.sample(seed_, Stream::reference, 0, theta);
    prior_.to_unbounded(theta, u);
    prior_.log_prob(theta, log_prior);
    prior_.log_abs_det_jacobian(u, log_jacobian);
    for (std::size_t i = 0; i < kAdaptRows; ++i) log_prior[i] += log_jacobian[i];
    log_prior_floor_ = *std::min_element(log_prior.begin(), log_prior.end()) - kTail;
  }

  bool is_stopped() const { return stop_ && stop_->requested(); }

  /// Rows first .. first + count - 1 of a step, from the prior alone without a mixture.
  Candidates draw(const TMixture* mixture, std::uint64_t step, std::uint64_t first, std::size_t count) const {
    Candidates c{Matrix<double>(count, dim_), Matrix<double>(count, dim_), {}, {}, {}};
    c.log_likelihood.resize(count);
    c.log_prior.resize(count);
    c.log_candidate.resize(count);
    pool_.run((count + kBlock - 1) / kBlock, [&](std::size_t block, int) {
      const std::size_t begin = block * kBlock;
      if (!is_stopped())
        draw_block(mixture, step * kRowsPerStep + first, begin, std::min(kBlock, count - begin), c);
    });
    return c;
  }

  /// The first candidates from the prior, then from mixtures that follow the likelihood to its full power.
  TMixture fit_by_tempering() const {
    Candidates c = draw(nullptr, 0, 0, kAdaptRows);
    if (*std::max_element(c.log_likelihood.begin(), c.log_likelihood.end()) == kMinusInfinity) refuse();
    double power = 0.0;
    TMixture mixture;
    int final_fits = 0;
    for (std::uint64_t step = 1; final_fits < kFinalFits && step < kLastStep && !is_stopped(); ++step) {
      power = next_power(c, power);
      mixture = fit(c.u, tempered_weights(c, power), step);
      if (power == 1.0) ++final_fits;
      if (final_fits < kFinalFits) c = draw(&mixture, step, 0, final_fits == 0 ? kAdaptRows : rows_for(c));
    }
    return mixture;
  }

  TMixture fit(const Matrix<double>& u, const std::vector<double>& weights, std::uint64_t step) const {
    return TMixture::fit(systematic_draws(u, weights, seed_ + step), components_for(dim_), seed_ + step);
  }

  Matrix<double> unbounded(MatrixView<const double> theta) const {
    Matrix<double> u(theta.rows, dim_);
    prior_.to_unbounded(theta, u);
    return u;
  }

  /// kFitRows rows by weight, with one random number for all; weights sum to 1.
  static Matrix<double> systematic_draws(const Matrix<double>& u, const std::vector<double>& weights,
                                         std::uint64_t seed) {
    RandomStream random(seed, Stream::resampling);
    const double start = random.uniform();
    Matrix<double> rows(kFitRows, u.cols());
    double sum = weights[0];
    for (std::size_t i = 0, k = 0; k < kFitRows; ++k) {
      while (i + 1 < u.rows() && sum * kFitRows < static_cast<double>(k) + start) sum += weights[++i];
      std::ranges::copy(u.row(i), rows.row(k).begin());
    }
    return rows;
  }

  static double log_weight(const Candidates& c, std::size_t i, double power = 1.0) {
    if (c.log_likelihood[i] == kMinusInfinity || c.log_prior[i] == kMinusInfinity) return kMinusInfinity;
    return power * c.log_likelihood[i] + c.log_prior[i] - c.log_candidate[i];
  }

  [[noreturn]] void refuse() const {
    throw DomainError(
        "task " + task_.name() + ": none of " + std::to_string(kAdaptRows) +
        " thetas of the prior can have made x_o; give an observation that the simulator can make");
  }

 private:
  void draw_block(const TMixture* mixture, std::uint64_t first_row, std::size_t begin, std::size_t count,
                  Candidates& c) const {
    const MatrixView<double> u = c.u.view().middle_rows(begin, count);
    const MatrixView<double> theta = c.theta.view().middle_rows(begin, count);
    prior_.sample(seed_, Stream::reference, first_row + begin, theta);
    prior_.to_unbounded(theta, u);
    for (std::size_t i = 0; mixture && i < count; ++i) {
      // Numbers apart from those that drew the prior's theta of this row.
      RandomStream random(seed_, Stream::acceptance, first_row + begin + i);
      if (random.uniform() >= kPriorShare) mixture->draw(random, u.row(i));
    }
    prior_.to_constrained(u, theta);
    const auto part = [&](std::vector<double>& all) { return std::span(all).subspan(begin, count); };
    const std::span<double> log_prior = part(c.log_prior), log_likelihood = part(c.log_likelihood);
    std::vector<double> log_jacobian(count), scratch(dim_);
    prior_.log_prob(theta, log_prior);
    prior_.log_abs_det_jacobian(u, log_jacobian);
    for (std::size_t i = 0; i < count; ++i) log_prior[i] += log_jacobian[i];
    likelihood_of_block(theta, log_prior, log_likelihood);
    for (std::size_t i = 0; i < count; ++i) {
      c.log_candidate[begin + i] =
          mixture ? log_add(std::log(kPriorShare) + log_prior[i],
                            std::log1p(-kPriorShare) + mixture->log_density(u.row(i), scratch))
                  : log_prior[i];
    }
  }

  /// Far tails of the prior, where curves are slow to solve, count as impossible without a look.
  void likelihood_of_block(MatrixView<const double> theta, std::span<const double> log_prior,
                           std::span<double> log_likelihood) const {
    Matrix<double> looked_at(theta.rows, dim_);
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < theta.rows; ++i) {
      if (log_prior[i] < log_prior_floor_) continue;
      std::ranges::copy(theta.row(i), looked_at.row(rows.size()).begin());
      rows.push_back(i);
    }
    looked_at.resize_rows(rows.size());
    std::vector<double> values(rows.size());
    task_.log_likelihood(looked_at, x_o_, values);
    std::ranges::fill(log_likelihood, kMinusInfinity);
    for (std::size_t k = 0; k < rows.size(); ++k) log_likelihood[rows[k]] = values[k];
  }

  static std::vector<double> tempered_weights(const Candidates& c, double power) {
    std::vector<double> weights(c.log_likelihood.size());
    double highest = kMinusInfinity;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = log_weight(c, i, power);
      highest = std::max(highest, weights[i]);
    }
    double sum = 0.0;
    for (double& w : weights) sum += w = std::exp(w - highest);
    for (double& w : weights) w /= sum;
    return weights;
  }

  static double ess(const Candidates& c, double power) {
    double squares = 0.0;
    for (const double w : tempered_weights(c, power)) squares += w * w;
    return 1.0 / squares;
  }

  /// As many candidates as bring an effective sample of the size of a fit: fewer would be repeated, and components would
  /// gather around repeated points.
  static std::size_t rows_for(const Candidates& c) {
    const double rows = static_cast<double>(c.log_likelihood.size());
    const double wanted = static_cast<double>(kFitRows) * rows / ess(c, 1.0);
    return std::clamp(static_cast<std::size_t>(wanted), kAdaptRows, kMostAdaptRows);
  }

  /// The largest power of the likelihood at which the candidates keep enough of their effective sample size; it grows by at
  /// least a tenth, or a poor set of candidates would hold it for ever.
  static double next_power(const Candidates& c, double power) {
    const double wanted = kWantedEss * static_cast<double>(c.log_likelihood.size());
    if (power == 1.0 || ess(c, 1.0) >= wanted) return 1.0;
    double low = power, high = 1.0;
    for (int i = 0; i < 40; ++i) {
      // Powers differ by orders of magnitude at first.
      const double middle = low > 0.0 ? std::sqrt(low * high) : high * 1e-2;
      (ess(c, middle) >= wanted ? low : high) = middle;
    }
    return std::min(1.0, std::max(low, 1.1 * power));
  }

  const Task& task_;
  std::span<const double> x_o_;
  Prior prior_;
  std::size_t dim_;
  std::uint64_t seed_;
  ThreadPool& pool_;
  const StopRequest* stop_;
  double log_prior_floor_;
};

/// Sums of weights relative to a fixed scale, and the mass above a bound.
class WeightSums {
 public:
  explicit WeightSums(double log_scale) : log_scale_(log_scale) {}

  void add(double log_weight, double log_bound) {
    const double w = std::exp(log_weight - log_scale_);
    const double above = std::max(0.0, w - std::exp(log_bound - log_scale_));
    count_ += 1.0;
    sum_ += w;
    squares_ += w * w;
    above_ += above;
    above_squares_ += above * above;
  }
  double log_mean() const { return log_scale_ + std::log(sum_ / count_); }
  /// Of log_mean, by the delta method.
  double standard_error() const { return std::sqrt(std::max(0.0, squares_ / (sum_ * sum_) - 1.0 / count_)); }
  /// Share of the mass above the bound, with two standard errors on top.
  double mass_above() const {
    const double error = std::sqrt(std::max(0.0, above_squares_ - above_ * above_ / count_));
    return (above_ + 2.0 * error) / sum_;
  }

 private:
  double log_scale_;
  double count_ = 0.0, sum_ = 0.0, squares_ = 0.0, above_ = 0.0, above_squares_ = 0.0;
};

std::vector<double> log_weights(const Candidates& c) {
  std::vector<double> weights(c.log_likelihood.size());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = Maker::log_weight(c, i);
  return weights;
}

/// The smallest bound with at most kClippedMass of the weights above it.
double log_bound(std::vector<double> weights) {
  std::sort(weights.begin(), weights.end(), std::greater<>());
  const double scale = weights.front();
  double sum = 0.0;
  for (const double w : weights) sum += std::exp(w - scale);
  double above = 0.0;  // sum of the weights before i
  for (std::size_t i = 1; i < weights.size(); ++i) {
    above += std::exp(weights[i - 1] - scale);
    if (above - static_cast<double>(i) * std::exp(weights[i] - scale) > kClippedMass * sum)
      return weights[i - 1];
  }
  return weights.back();
}

/// The first candidates with their bound: so many that the bound rests on enough of them.
Candidates pilot(const Maker& maker, const TMixture& mixture, double& bound) {
  for (std::size_t rows = kPilotRows;; rows *= 4) {
    Candidates c = maker.draw(&mixture, kLastStep, 0, rows);
    if (maker.is_stopped()) return c;
    const std::vector<double> weights = log_weights(c);
    bound = log_bound(weights);
    if (bound == kMinusInfinity) maker.refuse();
    double sum = 0.0, squares = 0.0;
    for (const double weight : weights) {
      sum += std::exp(weight - bound);
      squares += std::exp(2.0 * (weight - bound));
    }
    if (sum * sum >= kPilotEss * squares || rows >= kMostPilotRows) return c;
  }
}

/// Draws in blocks until there are enough.
void reject(const Maker& maker, const TMixture& mixture, std::size_t num_samples, std::uint64_t seed,
            ReferencePosterior& result) {
  double bound = 0.0;
  Candidates c = pilot(maker, mixture, bound);
  std::size_t accepted = 0;
  WeightSums sums(bound);
  while (!maker.is_stopped()) {
    const std::vector<double> weights = log_weights(c);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      sums.add(weights[i], bound);
      RandomStream random(seed, Stream::resampling, result.num_candidates + i);
      if (accepted == num_samples || std::log(random.uniform()) >= weights[i] - bound) continue;
      std::ranges::copy(c.theta.row(i), result.theta.row(accepted++).begin());
    }
    result.num_candidates += weights.size();
    const double rate = static_cast<double>(accepted) / static_cast<double>(result.num_candidates);
    if (accepted == num_samples || rate * kMostCandidates < static_cast<double>(num_samples)) break;
    c = maker.draw(&mixture, kLastStep, result.num_candidates, kPilotRows);
  }
  result.is_complete = accepted == num_samples;
  result.theta.resize_rows(accepted);
  if (result.num_candidates == 0) return;
  result.acceptance_rate = std::exp(sums.log_mean() - bound);
  result.error = sums.mass_above();
  result.log_evidence = sums.log_mean();
  result.log_evidence_se = sums.standard_error();
}

}  // namespace

ReferenceEvidence reference_evidence(const Task& task, std::span<const double> x_o,
                                     MatrixView<const double> draws, std::uint64_t seed, ThreadPool& pool) {
  const Maker maker(task, x_o, seed, pool, nullptr);
  const std::vector<double> equal(draws.rows, 1.0 / static_cast<double>(draws.rows));
  const TMixture mixture = maker.fit(maker.unbounded(draws), equal, 1);
  const std::vector<double> weights = log_weights(maker.draw(&mixture, kLastStep, 0, kEvidenceRows));
  WeightSums sums(*std::max_element(weights.begin(), weights.end()));
  for (const double weight : weights) sums.add(weight, weight);
  return {sums.log_mean(), sums.standard_error()};
}

ReferencePosterior make_reference_posterior(const Task& task, std::span<const double> x_o,
                                            std::size_t num_samples, std::uint64_t seed, ThreadPool& pool,
                                            const StopRequest* stop) {
  const Maker maker(task, x_o, seed, pool, stop);
  ReferencePosterior result;
  if (task.has_reference_posterior()) {
    result.method = "exact";
    result.theta = task.reference_posterior(x_o, num_samples, seed);
    const ReferenceEvidence evidence = reference_evidence(task, x_o, result.theta, seed, pool);
    result.log_evidence = evidence.log_evidence;
    result.log_evidence_se = evidence.standard_error;
    return result;
  }
  result.method = "rejection";
  result.theta = Matrix<double>(num_samples, task.dim_theta());
  const TMixture mixture = maker.fit_by_tempering();
  if (maker.is_stopped()) {
    result.is_complete = false;
    result.theta.resize_rows(0);
    return result;
  }
  reject(maker, mixture, num_samples, seed, result);
  return result;
}

}  // namespace nrec
