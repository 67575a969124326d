#pragma once

#include <cstdint>

#include "nrec/core/array.h"
#include "nrec/core/run_context.h"
#include "nrec/inference/posterior.h"

namespace nrec {

/// Where chains start.
struct ChainStarts {
  Matrix<double> theta;       // [num_chains, D]; no rows when the ratio is zero at every candidate
  Matrix<double> candidates;  // [n, D]: the prior draws they were picked from
};

/// Prior draws picked with probability proportional to the ratio (importance resampling of 100,000, or of
/// `max_evaluations` if that is less). A pure function of the seed.
///
/// Cost     one evaluation per candidate
ChainStarts chain_starts(const Posterior& posterior, std::size_t num_chains, std::int64_t max_evaluations,
                         const RunContext& run);

}  // namespace nrec
