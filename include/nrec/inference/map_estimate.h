#pragma once

#include <cstdint>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/run_context.h"
#include "nrec/inference/posterior.h"

namespace nrec {

/// Maximum of a posterior density, with what the search says about it.
struct MapEstimate {
  std::vector<double> theta;  // [D] maximum a posteriori
  double log_density = 0.0;   // log ratio + log prior there, not normalised
  double agreement = 0.0;     // share of the searches that end at this point, in (0, 1]
  std::size_t num_searches = 0;
  std::int64_t evaluations = 0;
  bool is_complete = false;  // no search was cut short by a stop request, a time limit or its own limit
};

/// Maximum a posteriori in theta space: where log_ratio + log prior is largest, in the units of theta.
///
/// The mode depends on the coordinates: in log theta, say, it is another point. The search moves in unbounded space, so it
/// stays inside the support, but no Jacobian is added. Eight searches by an evolution strategy (CMA-ES) start from draws: one
/// from the best, the others spread evenly over all of them; their steps have the covariance of the draws. They do not leave
/// the box that the draws span in unbounded space: a trained network knows nothing beyond, and may rise without limit there.
/// Fewer than 100 draws are replaced by prior draws. Searches agree when their log densities differ by less than 0.01 and every parameter by
/// less than a tenth of the draws' standard deviation; less than full agreement means several maxima, or a ridge.
///
/// Shapes   draws [S, D] of the posterior, may have no rows
/// Errors   ShapeError; UnsupportedError: a prior given by samples
/// Numerics deterministic in (run.seed, draws), whatever the number of threads. log_density is minus infinity and theta some
///          prior draw when no density was found
/// Cost     at most 8 (200 + 100 D) generations of 4 + 3 log D evaluations; all searches advance together
/// Source   [Hansen2016]; docs/methods/sampling.md
MapEstimate find_map(const Posterior& posterior, MatrixView<const double> draws, const RunContext& run);

}  // namespace nrec
