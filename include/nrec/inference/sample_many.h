#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/inference/sample.h"

namespace nrec {

/// Seed of the draws for observation `index` of a batch: `seed` itself for the first, so that a batch of one is sample().
std::uint64_t observation_seed(std::uint64_t seed, std::size_t index);

/// Makes the posterior of observation `index`; called from worker threads with a context of one thread.
using PosteriorMaker = std::function<Posterior(std::size_t index, const RunContext& run)>;

/// Draws for many observations in one call: the draws of observation i are those of sample() with observation_seed(seed, i),
/// whatever the number of threads.
///
/// Observations are worked on side by side, one thread each, which wastes nothing on synchronising threads over the small
/// batches of a few chains. Budgets of the options hold for each observation; the time limit of `run` for all of them: those
/// that were not begun when it was over, or when a stop was requested, have no draws and say so.
///
/// Errors   as sample(), and those of `make`
std::vector<PosteriorDraws> sample_many(std::size_t num_observations, const PosteriorMaker& make,
                                        const SamplingOptions& options, const RunContext& run);

/// The same for an estimator. Shapes   x_o [n, dim_x]
std::vector<PosteriorDraws> sample_many(const RatioEstimator& estimator, MatrixView<const double> x_o,
                                        const SamplingOptions& options, const RunContext& run);

}  // namespace nrec
