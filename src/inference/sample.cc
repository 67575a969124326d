#include "nrec/inference/sample.h"

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
    case SamplingStatus::no_support:
      break;
  }
  return "no support";
}

void describe(OptionTable& table, SamplingOptions& options) {
  const char* section = "sampling";
  table.add(section, "method", &options.method, {"auto", "rejection"}, "how to draw from the posterior");
  table.add(section, "num_samples", &options.num_samples, {.low = 1, .high = 1e9}, "draws");
  table.add(section, "max_evaluations", &options.max_evaluations, {.low = 1}, "most evaluations of the network per observation");
  table.add(section, "max_seconds", &options.max_seconds, {.low = 0, .low_open = true}, "most seconds of sampling per observation");
}

PosteriorDraws sample(const Posterior& posterior, const SamplingOptions& options, const RunContext& run) {
  if (options.method == "rejection" || options.method == "auto") return sample_by_rejection(posterior, options, run);
  throw ConfigError("sampling: method = \"" + options.method + "\" is unknown; it must be one of auto | rejection");
}

}  // namespace nrec
