#pragma once

#include "nrec/core/record.h"
#include "nrec/core/run_context.h"
#include "nrec/inference/posterior.h"
#include "nrec/inference/posterior_draws.h"
#include "nrec/inference/sample.h"
#include "nrec/priors/conditioned_prior.h"

namespace nrec {

/// Draws from the conditioned posterior with everything that belongs to them: statistics log_z, log_z_se, log_z_k_hat and
/// log_z_draws, normalised log densities, and the fixed parameters as constant columns.
///
/// `posterior` is the conditioned one. The evidence costs at most kEvidenceDraws evaluations beyond the budget of the sampler,
/// unless the sampler has it already.
PosteriorDraws draws_with_facts(const Posterior& posterior, const ConditionedPrior& conditioned,
                                const SamplingOptions& options, const RunContext& run);

/// Entries map.* of the mode, searched for from the draws. Nothing for a prior given by samples, which has none.
void add_map(Record& record, const Posterior& posterior, const ConditionedPrior& conditioned,
             const PosteriorDraws& draws, const RunContext& run);

}  // namespace nrec
