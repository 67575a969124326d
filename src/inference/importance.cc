#include <algorithm>
#include <cmath>
#include <cstdio>

#include "inference/evidence_of_weights.h"
#include "inference/importance_sampler.h"
#include "inference/prior_candidates.h"
#include "nrec/core/random.h"

namespace nrec {

namespace {

constexpr std::size_t kFirstCandidates = 2 * kCandidateBatch;
constexpr std::size_t kMostCandidates = 50'000'000;  // 8 bytes each
constexpr double kLeastGrowth = 1.2,
                 kMostGrowth = 2.0;     // of the candidates between two looks at their weights
constexpr double kGrowthMargin = 1.05;  // on what the weights so far say is needed
constexpr double kFarGrowth = 1e6;      // where a forecast ends
// Weights that carry enough draws, but are not reliable, get so many times as many candidates to become so.
constexpr std::size_t kPatience = 4;
constexpr double kLeastEssShare = 0.1;  // of the draws asked for
constexpr double kSecondsBetweenUpdates = 0.5;

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

}  // namespace

/// The weights of all candidates so far. The spans inside go stale with the next batch.
struct ImportanceSampler::Look {
  Look(std::span<const double> log_ratio, std::size_t wanted)
      : quality(log_ratio.empty() ? WeightQuality{} : judge_weights(log_ratio)),
        resampling(log_ratio, quality, wanted) {
    if (quality.ess > 0) supported = resampling.supported_draws();
  }
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

  WeightQuality quality;
  Resampling resampling;
  std::size_t supported = 0;  // draws that these weights carry
};

ImportanceSampler::ImportanceSampler(const Posterior& posterior, const SamplingOptions& options,
                                     const RunContext& run)
    : posterior_(posterior),
      options_(options),
      run_(run),
      wanted_(static_cast<std::size_t>(options.num_samples)),
      non_finite_before_(posterior.num_non_finite()) {}

void ImportanceSampler::take_over(std::vector<double> log_ratios, std::int64_t evaluations, double seconds) {
  log_ratio_ = std::move(log_ratios);
  evaluations_ = evaluations;
  seconds_before_ = seconds;
}

PosteriorDraws ImportanceSampler::draw() {
  std::size_t goal = std::max(kFirstCandidates, log_ratio_.size());
  std::size_t first_enough = 0;  // candidates when there were enough draws for the first time
  for (;;) {
    while (log_ratio_.size() < goal && !run_.stop_requested() && !is_spent()) {
      next_batch();
      report(goal);
    }
    const Look now(log_ratio_, wanted_);
    const bool is_enough = now.supported == wanted_;
    if (run_.stop_requested()) return result(SamplingStatus::stopped, now);
    if (is_enough && now.quality.is_reliable()) return result(SamplingStatus::complete, now);
    if (has_no_support(now)) return result(SamplingStatus::no_support, now);
    if (is_enough && first_enough == 0) first_enough = log_ratio_.size();
    if (is_spent() || (is_enough && log_ratio_.size() >= kPatience * first_enough))
      return result(is_usable(now) ? SamplingStatus::budget_spent : SamplingStatus::weights_unreliable, now);
    const double growth = kGrowthMargin * now.resampling.growth_needed(kFarGrowth);
    goal = static_cast<std::size_t>(static_cast<double>(log_ratio_.size()) *
                                    std::clamp(growth, kLeastGrowth, kMostGrowth));
  }
}

std::optional<std::size_t> ImportanceSampler::candidates_needed(std::size_t most) const {
  const Look now(log_ratio_, wanted_);
  const double size = static_cast<double>(log_ratio_.size());
  if (now.quality.ess == 0 || !now.quality.is_reliable() || static_cast<double>(most) < size)
    return std::nullopt;
  const double growth = now.resampling.growth_needed(static_cast<double>(most) / size);
  if (std::isinf(growth)) return std::nullopt;
  return static_cast<std::size_t>(growth * size);
}

/// Whether fewer draws than asked for are at least right.
bool ImportanceSampler::is_usable(const Look& now) const {
  return log_ratio_.empty() ||
         (now.quality.is_reliable() && now.quality.ess >= kLeastEssShare * static_cast<double>(wanted_));
}

bool ImportanceSampler::has_no_support(const Look& now) const {
  if (log_ratio_.empty() || now.quality.ess > 0) return false;
  return is_spent() || posterior_.num_non_finite() - non_finite_before_ >= log_ratio_.size();
}

bool ImportanceSampler::is_spent() const {
  return evaluations_ >= options_.max_evaluations || log_ratio_.size() >= kMostCandidates ||
         seconds() > std::min(options_.max_seconds, run_.time_limit);
}

void ImportanceSampler::next_batch() {
  const auto left = static_cast<std::size_t>(options_.max_evaluations - evaluations_);
  const std::size_t first = log_ratio_.size();
  const std::size_t n = std::min({kCandidateBatch, left, kMostCandidates - first});
  Matrix<double> theta(n, posterior_.prior().dim());
  draw_candidates(posterior_.prior(), run_, Stream::sampler, first, theta);
  log_ratio_.resize(first + n);
  posterior_.log_ratio(theta, std::span(log_ratio_).subspan(first));
  evaluations_ += static_cast<std::int64_t>(n);
}

void ImportanceSampler::report(std::size_t goal) {
  if (watch_.seconds() - last_update_ < kSecondsBetweenUpdates) return;
  last_update_ = watch_.seconds();
  ProgressUpdate update;
  update.stage = "sampling";
  update.unit = "prior draw";
  update.done = static_cast<double>(log_ratio_.size());
  update.total = static_cast<double>(std::max(goal, log_ratio_.size()));
  update.detail = "importance resampling";
  run_.log.progress(update);
}

PosteriorDraws ImportanceSampler::result(SamplingStatus status, const Look& now) const {
  PosteriorDraws draws;
  draws.method = "importance";
  draws.names = posterior_.prior().names();
  draws.status = status;
  RandomStream random(run_.seed, Stream::resampling);
  const std::vector<std::size_t> rows = now.resampling.draw(now.supported, random.uniform());
  draws.theta = Matrix<double>(rows.size(), posterior_.prior().dim());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    posterior_.prior().sample(run_.seed, Stream::sampler, rows[i], draws.theta.view().middle_rows(i, 1));
    draws.log_ratio.push_back(log_ratio_[rows[i]]);
  }
  const Copies copies = count_copies(rows);
  draws.statistics.set("evaluations", static_cast<double>(evaluations_));
  draws.statistics.set("prior_draws", log_ratio_.size());
  draws.statistics.set("distinct_draws", copies.distinct);
  draws.statistics.set("effective_draws", copies.effective_draws);
  draws.statistics.set("ess", now.quality.ess);
  draws.statistics.set("k_hat", now.quality.k_hat);
  draws.statistics.set("k_hat_threshold", now.quality.threshold());
  if (now.quality.ess > 0) add_evidence(draws.statistics, evidence_of_weights(now.quality));
  draws.statistics.set("non_finite_log_ratios", posterior_.num_non_finite());
  draws.statistics.set("seconds", seconds());
  draws.message = message(status, copies, now);
  return draws;
}

std::string ImportanceSampler::message(SamplingStatus status, const Copies& copies, const Look& now) const {
  const std::string have = std::to_string(now.supported) + " of " + std::to_string(wanted_) +
                           " draws by importance resampling of " + std::to_string(log_ratio_.size()) +
                           " prior draws";
  if (log_ratio_.empty())
    return have + (status == SamplingStatus::stopped
                       ? "; stopped on request"
                       : "; the budget ended before the first batch of prior draws: raise it");
  if (status == SamplingStatus::no_support)
    return have +
           ": the ratio was zero or not finite at all of them; check the observation against the "
           "simulations";
  const WeightQuality& weights = now.quality;
  const std::string text = have + ", " + std::to_string(copies.distinct) +
                           " distinct, effective sample size of the weights " + short_number(weights.ess) +
                           ", k-hat " + short_number(weights.k_hat);
  switch (status) {
    case SamplingStatus::complete:
      return text;
    case SamplingStatus::stopped:
      return text + "; stopped on request";
    case SamplingStatus::weights_unreliable:
      return text + "; the weights are unreliable: " +
             (weights.is_reliable() ? "the effective sample size is below a tenth of the draws asked for"
                                    : "k-hat is above " + short_number(weights.threshold())) +
             "; the posterior is far narrower than the prior: " +
             (posterior_.prior().has_density() ? "use method = \"slice\", or raise the budget"
                                               : "raise the budget");
    default:
      break;
  }
  const double growth = now.resampling.growth_needed(kFarGrowth);
  return text + "; the budget is spent (max_evaluations = " + std::to_string(options_.max_evaluations) +
         ", max_seconds = " + number_text(std::min(options_.max_seconds, run_.time_limit)) + ", at most " +
         std::to_string(kMostCandidates) + " prior draws); the missing draws would take about " +
         short_number(seconds() * (growth - 1.0)) + " s more: raise the budget or ask for fewer draws";
}

PosteriorDraws sample_by_importance(const Posterior& posterior, const SamplingOptions& options,
                                    const RunContext& run) {
  return ImportanceSampler(posterior, options, run).draw();
}

}  // namespace nrec
