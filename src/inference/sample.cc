#include "nrec/inference/sample.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "nrec/core/error.h"

namespace nrec {

std::string_view sampling_status_name(SamplingStatus status) {
  switch (status) {
    case SamplingStatus::complete:
      return "complete";
    case SamplingStatus::budget_spent:
      return "budget spent";
    case SamplingStatus::stopped:
      return "stopped";
    case SamplingStatus::chains_disagree:
      return "chains disagree";
    case SamplingStatus::no_support:
      break;
  }
  return "no support";
}

void describe(OptionTable& table, SamplingOptions& options) {
  const char* section = "sampling";
  table.add(
      section, "method", &options.method, {"auto", "rejection", "slice", "nuts"},
      "how to draw from the posterior; auto: rejection if its forecast fits the budget, else slice; nuts: "
      "Hamiltonian Monte Carlo with the gradient of the network");
  table.add(section, "num_samples", &options.num_samples, {.low = 1, .high = 1e9}, "draws");
  table.add(section, "max_evaluations", &options.max_evaluations, {.low = 1},
            "most evaluations of the network per observation");
  table.add(section, "max_seconds", &options.max_seconds, {.low = 0, .low_open = true},
            "most seconds of sampling per observation");
}

namespace {

// Counts, not seconds, so that the choice does not depend on the machine.
constexpr std::int64_t kPilotEvaluations = 500000;
constexpr double kMostPilots = 25.0;  // rejection may cost about as many evaluations as slice sampling does

/// Rejection, whose draws are independent, unless its forecast is longer than slice sampling takes.
PosteriorDraws sample_automatically(const Posterior& posterior, const SamplingOptions& options,
                                    const RunContext& run) {
  if (!posterior.prior().has_density()) return sample_by_rejection(posterior, options, run);
  SamplingOptions pilot = options;
  pilot.max_evaluations = std::min<std::int64_t>(options.max_evaluations, kPilotEvaluations);
  PosteriorDraws draws = sample_by_rejection(posterior, pilot, run);
  if (draws.status == SamplingStatus::complete || draws.status == SamplingStatus::stopped ||
      pilot.max_evaluations == options.max_evaluations)
    return draws;
  const double share = static_cast<double>(draws.size()) / static_cast<double>(options.num_samples);
  if (share * kMostPilots >= 1.0) return sample_by_rejection(posterior, options, run);
  draws = sample_by_slice(posterior, options, run);
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.2g",
                share * static_cast<double>(options.num_samples) / static_cast<double>(kPilotEvaluations));
  draws.message += std::string("; auto chose slice because rejection accepts only ") + rate;
  return draws;
}

}  // namespace

PosteriorDraws sample(const Posterior& posterior, const SamplingOptions& options, const RunContext& run) {
  if (options.method == "rejection") return sample_by_rejection(posterior, options, run);
  if (options.method == "slice") return sample_by_slice(posterior, options, run);
  if (options.method == "nuts") return sample_by_nuts(posterior, options, run);
  if (options.method == "auto") return sample_automatically(posterior, options, run);
  throw ConfigError("sampling: method = \"" + options.method +
                    "\" is unknown; it must be one of auto | rejection | slice | nuts");
}

}  // namespace nrec
