#include "nrec/inference/sample.h"

#include <string>

#include "inference/automatic.h"
#include "nrec/core/error.h"

namespace nrec {

void describe(OptionTable& table, SamplingOptions& options) {
  const char* section = "sampling";
  table.add(
      section, "method", &options.method, {"auto", "rejection", "importance", "slice", "nuts"},
      "how to draw from the posterior; auto: rejection if its forecast fits the budget, else importance if "
      "its draws are as good, else nuts (gradient, 8 parameters or more) or slice; nuts: Hamiltonian Monte "
      "Carlo with the gradient of the network");
  table.add(section, "num_samples", &options.num_samples, {.low = 1, .high = 1e9}, "draws");
  table.add(section, "max_evaluations", &options.max_evaluations, {.low = 1},
            "most evaluations of the network per observation");
  table.add(section, "max_seconds", &options.max_seconds, {.low = 0, .low_open = true},
            "most seconds of sampling per observation");
  table.add(section, "fix", &options.fix,
            "name=value: hold these parameters at these values and sample the others given them");
  table.add(section, "map", &options.map, "look for the maximum of the posterior density, too");
}

void require_method(const SamplingOptions& options, const Prior& prior) {
  if (prior.has_density() || (options.method != "slice" && options.method != "nuts")) return;
  throw UnsupportedError("sampling: method = \"" + options.method +
                         "\" needs the density of the prior, but the prior is given by samples; use method = "
                         "\"rejection\" or \"importance\"");
}

PosteriorDraws sample(const Posterior& posterior, const SamplingOptions& options, const RunContext& run) {
  if (!options.fix.empty()) {
    const ConditionedPrior fixed = condition(posterior.prior(), read_fixed_parameters(options.fix));
    SamplingOptions rest = options;
    rest.fix.clear();
    return with_fixed_columns(sample(posterior.conditioned(fixed), rest, run), fixed);
  }
  if (options.method == "rejection") return sample_by_rejection(posterior, options, run);
  if (options.method == "importance") return sample_by_importance(posterior, options, run);
  if (options.method == "slice") return sample_by_slice(posterior, options, run);
  if (options.method == "nuts") return sample_by_nuts(posterior, options, run);
  if (options.method == "auto") return sample_automatically(posterior, options, run);
  throw ConfigError("sampling: method = \"" + options.method +
                    "\" is unknown; it must be one of auto | rejection | importance | slice | nuts");
}

}  // namespace nrec
