#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "inference/prior_candidates.h"
#include "inference/rejection_sampler.h"
#include "nrec/core/random.h"

namespace nrec {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr double kBoundMargin = 0.1823215567939546;  // log 1.2
constexpr std::size_t kPilotDraws = 10000;
constexpr std::size_t kSearchStarts = 100;  // of the local search for the largest ratio
constexpr std::size_t kSearchPerStart = 20;
constexpr int kSearchRounds = 10;
constexpr double kSecondsBetweenUpdates = 0.5;

}  // namespace

RejectionSampler::RejectionSampler(const Posterior& posterior, const SamplingOptions& options,
                                   const RunContext& run)
    : posterior_(posterior),
      options_(options),
      run_(run),
      wanted_(static_cast<std::size_t>(options.num_samples)) {}

SamplingStatus RejectionSampler::advance(std::int64_t max_evaluations) {
  max_evaluations = std::min(max_evaluations, options_.max_evaluations);
  if (!has_pilot_) any_finite_ = pilot();
  has_pilot_ = true;
  if (!any_finite_) return SamplingStatus::no_support;
  while (accepted_.size() < wanted_) {
    if (run_.stop_requested()) return SamplingStatus::stopped;
    if (evaluations_ >= max_evaluations || is_spent())
      return largest_ == kMinusInfinity ? SamplingStatus::no_support : SamplingStatus::budget_spent;
    next_batch(max_evaluations);
    report();
  }
  return SamplingStatus::complete;
}

bool RejectionSampler::is_spent() const {
  return evaluations_ >= options_.max_evaluations ||
         watch_.seconds() > std::min(options_.max_seconds, run_.time_limit);
}

std::vector<double> RejectionSampler::take_log_ratios() {
  keep_log_ratios_ = false;
  return std::exchange(log_ratios_, {});
}

/// First draws: the bound, and a local search around the best of them that may raise it.
/// False when no ratio was a number: then more draws will not help.
bool RejectionSampler::pilot() {
  const std::size_t n = std::min<std::size_t>(
      kPilotDraws, static_cast<std::size_t>(std::max<std::int64_t>(1, options_.max_evaluations / 2)));
  Matrix<double> theta(n, posterior_.prior().dim());
  posterior_.prior().sample(run_.seed, Stream::check, 0, theta);
  std::vector<double> log_ratio(n);
  evaluate(theta, log_ratio);
  for (const double value : log_ratio) raise_bound(value);
  const auto search_cost = static_cast<std::int64_t>(kSearchStarts * kSearchPerStart * kSearchRounds);
  const bool any_finite = posterior_.num_non_finite() < n;
  if (largest_ > kMinusInfinity && evaluations_ + search_cost < options_.max_evaluations)
    search(theta, log_ratio);
  return any_finite;
}

/// Random steps around the best draws in unbounded space, shrinking each round; only the largest ratio is of interest.
void RejectionSampler::search(const Matrix<double>& theta, const std::vector<double>& log_ratio) {
  const std::size_t dim = theta.cols();
  std::vector<std::size_t> order(theta.rows());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const std::size_t starts = std::min(kSearchStarts, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(starts), order.end(),
                    [&](std::size_t a, std::size_t b) { return log_ratio[a] > log_ratio[b]; });
  Matrix<double> best(starts, dim);
  std::vector<double> best_value(starts);
  for (std::size_t s = 0; s < starts; ++s) {
    std::copy(theta.row(order[s]).begin(), theta.row(order[s]).end(), best.row(s).begin());
    best_value[s] = log_ratio[order[s]];
  }
  Matrix<double> unbounded(starts, dim);
  posterior_.prior().to_unbounded(best, unbounded);
  std::vector<double> spread(dim);
  for (std::size_t d = 0; d < dim; ++d) {
    double mean = 0, square = 0;
    for (std::size_t s = 0; s < starts; ++s) mean += unbounded(s, d) / static_cast<double>(starts);
    for (std::size_t s = 0; s < starts; ++s)
      square += (unbounded(s, d) - mean) * (unbounded(s, d) - mean) / static_cast<double>(starts);
    spread[d] = std::sqrt(square);
  }
  Matrix<double> trial(starts * kSearchPerStart, dim);
  Matrix<double> trial_theta(trial.rows(), dim);
  std::vector<double> value(trial.rows());
  for (int round = 0; round < kSearchRounds; ++round) {
    RandomStream random(run_.seed, Stream::sampler, static_cast<std::uint64_t>(round));
    const double scale = std::pow(0.6, round) * 0.5;
    for (std::size_t i = 0; i < trial.rows(); ++i) {
      for (std::size_t d = 0; d < dim; ++d)
        trial(i, d) = unbounded(i / kSearchPerStart, d) + scale * spread[d] * random.normal();
    }
    posterior_.prior().to_constrained(trial, trial_theta);
    evaluate(trial_theta, value);
    for (std::size_t i = 0; i < trial.rows(); ++i) {
      if (!posterior_.prior().contains(trial_theta.row(i))) continue;
      raise_bound(value[i]);
      const std::size_t s = i / kSearchPerStart;
      if (value[i] > best_value[s]) {
        best_value[s] = value[i];
        std::copy(trial.row(i).begin(), trial.row(i).end(), unbounded.row(s).begin());
      }
    }
  }
}

void RejectionSampler::evaluate(const Matrix<double>& theta, std::vector<double>& log_ratio) {
  posterior_.log_ratio(theta, log_ratio);
  evaluations_ += static_cast<std::int64_t>(theta.rows());
}

void RejectionSampler::raise_bound(double log_ratio) {
  if (!(log_ratio > largest_)) return;
  largest_ = log_ratio;
  bound_ = largest_ + kBoundMargin;
}

void RejectionSampler::next_batch(std::int64_t max_evaluations) {
  const auto left = static_cast<std::size_t>(std::max<std::int64_t>(1, max_evaluations - evaluations_));
  const std::size_t n = std::min(kCandidateBatch, left);
  if (theta_.rows() != n) theta_ = Matrix<double>(n, posterior_.prior().dim());
  log_ratio_.resize(n);
  draw_candidates(posterior_.prior(), run_, Stream::sampler, next_row_, theta_);
  evaluate(theta_, log_ratio_);
  const double before = bound_;
  for (std::size_t i = 0; i < n; ++i) raise_bound(log_ratio_[i]);
  if (bound_ > before) std::erase_if(accepted_, [&](const Accepted& a) { return !(a.score > bound_); });
  for (std::size_t i = 0; i < n; ++i) {
    if (log_ratio_[i] == kMinusInfinity) continue;
    RandomStream random(run_.seed, Stream::acceptance, next_row_ + i);
    const double score = log_ratio_[i] - std::log(random.uniform());
    if (score > bound_)
      accepted_.push_back({score, log_ratio_[i], {theta_.row(i).begin(), theta_.row(i).end()}});
  }
  next_row_ += n;
  if (keep_log_ratios_) log_ratios_.insert(log_ratios_.end(), log_ratio_.begin(), log_ratio_.end());
}

double RejectionSampler::acceptance_rate() const {
  return next_row_ ? static_cast<double>(accepted_.size()) / static_cast<double>(next_row_) : 0.0;
}

double RejectionSampler::seconds_left() const {
  if (accepted_.empty()) return -1;
  return watch_.seconds() * static_cast<double>(wanted_ - std::min(wanted_, accepted_.size())) /
         static_cast<double>(accepted_.size());
}

void RejectionSampler::report() {
  if (watch_.seconds() - last_update_ < kSecondsBetweenUpdates) return;
  last_update_ = watch_.seconds();
  ProgressUpdate update;
  update.stage = "sampling";
  update.unit = "draw";
  update.done = static_cast<double>(std::min(wanted_, accepted_.size()));
  update.total = static_cast<double>(wanted_);
  update.seconds_left = seconds_left();
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.3g", acceptance_rate());
  update.detail = std::string("acceptance ") + rate;
  run_.log.progress(update);
}

PosteriorDraws RejectionSampler::result(SamplingStatus status) const {
  const std::size_t n = std::min(wanted_, accepted_.size());
  PosteriorDraws draws;
  draws.method = "rejection";
  draws.names = posterior_.prior().names();
  draws.status = status;
  draws.theta = Matrix<double>(n, posterior_.prior().dim());
  for (std::size_t i = 0; i < n; ++i) {
    std::copy(accepted_[i].theta.begin(), accepted_[i].theta.end(), draws.theta.row(i).begin());
    draws.log_ratio.push_back(accepted_[i].log_ratio);
  }
  draws.message = message(status, n);
  draws.statistics.set("evaluations", static_cast<double>(evaluations_));
  draws.statistics.set("acceptance_rate", acceptance_rate());
  draws.statistics.set("largest_log_ratio", largest_);
  draws.statistics.set("non_finite_log_ratios", posterior_.num_non_finite());
  draws.statistics.set("seconds", watch_.seconds());
  return draws;
}

std::string RejectionSampler::message(SamplingStatus status, std::size_t n) const {
  const std::string have =
      std::to_string(n) + " of " + std::to_string(wanted_) + " draws by rejection from the prior";
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.3g", acceptance_rate());
  if (status == SamplingStatus::complete) return have + ", acceptance rate " + rate;
  if (status == SamplingStatus::no_support) {
    return have + ": the ratio was zero or not finite at all " +
           number_text(static_cast<double>(evaluations_)) +
           " prior draws; check the observation against the simulations";
  }
  std::string text =
      have + ", acceptance rate " + rate +
      (status == SamplingStatus::stopped
           ? "; stopped on request"
           : "; the budget is spent (max_evaluations = " + std::to_string(options_.max_evaluations) +
                 ", max_seconds = " + number_text(std::min(options_.max_seconds, run_.time_limit)) + ")");
  if (next_row_ == 0) return text + "; it ended before the first batch of candidates: raise it";
  if (n == 0) {
    const double at_least = watch_.seconds() * static_cast<double>(wanted_);
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.3g", at_least);
    return text + "; not one draw was accepted, so all would take more than " + seconds +
           " s: the posterior is far narrower than the prior";
  }
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3g", seconds_left());
  return text + "; the missing draws would take about " + seconds +
         " s more: raise the budget or ask for fewer draws";
}

PosteriorDraws sample_by_rejection(const Posterior& posterior, const SamplingOptions& options,
                                   const RunContext& run) {
  RejectionSampler sampler(posterior, options, run);
  const SamplingStatus status = sampler.advance(options.max_evaluations);
  return sampler.result(status);
}

}  // namespace nrec
