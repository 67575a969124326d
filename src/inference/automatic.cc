#include "inference/automatic.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "inference/importance_sampler.h"
#include "inference/rejection_sampler.h"

namespace nrec {

namespace {

// Counts, not seconds, so that the choice does not depend on the machine.
constexpr std::int64_t kPilotEvaluations = 500000;
// What independent draws may cost: about as much as slice sampling.
constexpr double kEvaluationsPerDraw = 1250.0;
constexpr std::int64_t kLeastAffordable = 2 * kPilotEvaluations;

/// The most evaluations that independent draws are worth, and that the budget allows.
std::int64_t affordable(const SamplingOptions& options) {
  const double share = kEvaluationsPerDraw * static_cast<double>(options.num_samples);
  const double most = std::max(share, static_cast<double>(kLeastAffordable));
  return static_cast<std::int64_t>(std::min(most, static_cast<double>(options.max_evaluations)));
}

/// The draws with the reason of the choice.
PosteriorDraws explained(PosteriorDraws draws, const char* format, double value) {
  char reason[128];
  std::snprintf(reason, sizeof reason, format, value);
  draws.message += std::string("; auto chose ") + reason;
  return draws;
}

/// Slice sampling with what is left of the budget.
PosteriorDraws slice_after(std::int64_t evaluations, double seconds, const Posterior& posterior,
                           SamplingOptions options, RunContext run) {
  options.max_evaluations = std::max<std::int64_t>(1, options.max_evaluations - evaluations);
  options.max_seconds = std::max(0.0, options.max_seconds - seconds);
  run.time_limit = std::max(0.0, run.time_limit - seconds);
  PosteriorDraws draws = sample_by_slice(posterior, options, run);
  const RecordValue* own = draws.statistics.find("evaluations");
  if (own) draws.statistics.set("evaluations", std::get<double>(*own) + static_cast<double>(evaluations));
  return draws;
}

}  // namespace

PosteriorDraws sample_automatically(const Posterior& posterior, const SamplingOptions& options,
                                    const RunContext& run) {
  RejectionSampler rejection(posterior, options, run);
  rejection.keep_log_ratios(true);
  SamplingStatus status = rejection.advance(kPilotEvaluations);
  const double rate = rejection.acceptance_rate();
  if (status == SamplingStatus::complete)
    return explained(rejection.result(status), "rejection because it accepts %.2g", rate);
  if (status != SamplingStatus::budget_spent || rejection.is_spent()) return rejection.result(status);
  const std::int64_t most = affordable(options);
  const bool is_quick =
      rate > 0.0 && static_cast<double>(options.num_samples) / rate <= static_cast<double>(most);
  ImportanceSampler importance(posterior, options, run);
  importance.take_over(rejection.take_log_ratios(), rejection.evaluations(), rejection.seconds());
  if (!is_quick && importance.candidates_needed(static_cast<std::size_t>(most))) {
    PosteriorDraws draws = importance.draw();
    if (draws.status != SamplingStatus::weights_unreliable)
      return explained(std::move(draws),
                       "importance because rejection accepts only %.2g and the weights carry the draws",
                       rate);
  }
  if (!is_quick && posterior.prior().has_density()) {
    return explained(slice_after(importance.evaluations(), importance.seconds(), posterior, options, run),
                     "slice because rejection accepts only %.2g", rate);
  }
  status = rejection.advance(options.max_evaluations);
  return explained(rejection.result(status), "rejection because it accepts %.2g", rate);
}

}  // namespace nrec
