#include "inference/automatic.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "inference/importance_sampler.h"
#include "inference/rejection_sampler.h"
#include "nrec/core/stop.h"

namespace nrec {

namespace {

// Counts, not seconds, so that the choice does not depend on the machine.
// The pilot: few draws are worth few evaluations.
constexpr double kPilotEvaluationsPerDraw = 250.0;
constexpr double kLeastPilot = 100000.0, kMostPilot = 500000.0;
// Between what was measured: no gain in two dimensions, chains that disagree in five (slcp), nine times less time in ten.
constexpr std::size_t kLeastNutsDimension = 8;
// What independent draws may cost: about as much as slice sampling.
constexpr double kEvaluationsPerDraw = 1250.0;
constexpr double kLeastAffordable = 500000.0;  // where chains start and warm up costs as much

std::int64_t pilot_evaluations(const SamplingOptions& options) {
  return static_cast<std::int64_t>(std::clamp(
      kPilotEvaluationsPerDraw * static_cast<double>(options.num_samples), kLeastPilot, kMostPilot));
}

/// The most evaluations that independent draws are worth, and that the budget allows.
std::int64_t affordable(const SamplingOptions& options) {
  const double share = kEvaluationsPerDraw * static_cast<double>(options.num_samples);
  const double most = std::max(share, kLeastAffordable);
  return static_cast<std::int64_t>(std::min(most, static_cast<double>(options.max_evaluations)));
}

/// The draws with the reason of the choice.
PosteriorDraws explained(PosteriorDraws draws, const char* format, double value) {
  char reason[128];
  std::snprintf(reason, sizeof reason, format, value);
  draws.message += std::string("; auto chose ") + reason;
  return draws;
}

/// Whether the no-U-turn sampler's draws are as good as it thinks: it has seen no edge that it could not follow.
bool is_sound(const PosteriorDraws& draws) {
  const RecordValue* divergences = draws.statistics.find("divergences");
  return draws.status != SamplingStatus::chains_disagree &&
         !(divergences && std::get<std::int64_t>(*divergences) > 0);
}

/// What the methods of one call have spent together.
struct Spent {
  std::int64_t evaluations = 0;
  double seconds = 0.0;
};

/// One sampler of chains with what is left of the budget; adds what it took.
PosteriorDraws chains_after(Spent& spent, const char* method, const Posterior& posterior,
                            SamplingOptions options, RunContext run) {
  const Stopwatch watch;
  options.method = method;
  options.max_evaluations = std::max<std::int64_t>(1, options.max_evaluations - spent.evaluations);
  options.max_seconds = std::max(0.0, options.max_seconds - spent.seconds);
  run.time_limit = std::max(0.0, run.time_limit - spent.seconds);
  PosteriorDraws draws = sample(posterior, options, run);
  spent.evaluations += static_cast<std::int64_t>(std::get<double>(*draws.statistics.find("evaluations")));
  spent.seconds += watch.seconds();
  draws.statistics.set("evaluations", static_cast<double>(spent.evaluations));
  return draws;
}

/// Chains: along the gradient where there is one and it pays, else, or where that is in trouble, by slices.
PosteriorDraws by_chains(Spent spent, double rate, const Posterior& posterior, const SamplingOptions& options,
                         const RunContext& run) {
  if (!posterior.has_gradient() || posterior.prior().dim() < kLeastNutsDimension)
    return explained(chains_after(spent, "slice", posterior, options, run),
                     "slice because rejection accepts only %.2g", rate);
  PosteriorDraws draws = chains_after(spent, "nuts", posterior, options, run);
  if (is_sound(draws))
    return explained(std::move(draws), "nuts because rejection accepts only %.2g and there is a gradient",
                     rate);
  PosteriorDraws slice = chains_after(spent, "slice", posterior, options, run);
  // A budget that ends here leaves the draws that there are, with their warning.
  if (slice.size() < draws.size())
    return explained(std::move(draws), "nuts because rejection accepts only %.2g and there is a gradient",
                     rate);
  return explained(std::move(slice),
                   "slice because rejection accepts only %.2g and nuts had divergences or disagreeing chains",
                   rate);
}

}  // namespace

PosteriorDraws sample_automatically(const Posterior& posterior, const SamplingOptions& options,
                                    const RunContext& run) {
  RejectionSampler rejection(posterior, options, run);
  rejection.keep_log_ratios(true);
  SamplingStatus status = rejection.advance(pilot_evaluations(options));
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
    return by_chains({importance.evaluations(), importance.seconds()}, rate, posterior, options, run);
  }
  status = rejection.advance(options.max_evaluations);
  return explained(rejection.result(status), "rejection because it accepts %.2g", rate);
}

}  // namespace nrec
