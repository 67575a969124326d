#include "commands/posterior_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "inference/evidence_of_weights.h"
#include "nrec/inference/evidence.h"
#include "nrec/inference/map_estimate.h"

namespace nrec {

namespace {

double statistic(const PosteriorDraws& draws, const char* name) {
  const RecordValue* value = draws.statistics.find(name);
  const double* number = value ? std::get_if<double>(value) : nullptr;
  return number ? *number : std::nan("");
}

}  // namespace

PosteriorDraws draws_with_facts(const Posterior& posterior, const ConditionedPrior& conditioned,
                                const SamplingOptions& options, const RunContext& run) {
  SamplingOptions free = options;
  free.fix.clear();  // done by the conditioned posterior
  PosteriorDraws draws = sample(posterior, free, run);
  if (!draws.statistics.find("log_z")) {
    const auto most = static_cast<std::size_t>(std::max<std::int64_t>(2, options.max_evaluations));
    add_evidence(draws.statistics, log_evidence(posterior, run, std::min(kEvidenceDraws, most)));
  }
  const double log_z = statistic(draws, "log_z");
  if (posterior.prior().has_density() && std::isfinite(log_z)) {
    draws.log_density.resize(draws.size());
    posterior.prior().log_prob(draws.theta, draws.log_density);
    for (std::size_t i = 0; i < draws.size(); ++i) draws.log_density[i] += draws.log_ratio[i] - log_z;
  }
  return with_fixed_columns(std::move(draws), conditioned);
}

void add_map(Record& record, const Posterior& posterior, const ConditionedPrior& conditioned,
             const PosteriorDraws& draws, const RunContext& run) {
  if (!posterior.prior().has_density()) return;
  const Stopwatch watch;
  const MapEstimate map = find_map(posterior, conditioned.only_free(draws.theta), run);
  const Matrix<double> theta = conditioned.all_columns({map.theta.data(), 1, map.theta.size()});
  const double log_density = map.log_density - statistic(draws, "log_z");
  record.set("map.theta", theta.values());
  record.set("map.log_density", log_density);
  record.set("map.agreement", map.agreement);
  record.set("map.num_searches", map.num_searches);
  record.set("map.complete", map.is_complete);
  record.set("map.evaluations", static_cast<double>(map.evaluations));
  record.set("map.seconds", watch.seconds());
  run.log.info(fmt::format("mode: log density {:.4g}, {:.0f} of {} searches agree", log_density,
                           map.agreement * static_cast<double>(map.num_searches), map.num_searches));
}

}  // namespace nrec
