#pragma once

#include "inference/pareto_smoothing.h"
#include "nrec/core/record.h"
#include "nrec/inference/evidence.h"

namespace nrec {

/// Evidence from the log ratios of prior draws.
LogEvidence evidence_of_weights(const WeightQuality& weights);

/// Entries log_z, log_z_se, log_z_k_hat and log_z_draws.
void add_evidence(Record& record, const LogEvidence& evidence);

}  // namespace nrec
