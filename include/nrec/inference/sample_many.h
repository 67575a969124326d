#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/inference/sample.h"

namespace nrec {

/// Seed of the draws for observation `index` of a batch: `seed` itself for the first, so that a batch of one is sample().
std::uint64_t observation_seed(std::uint64_t seed, std::size_t index);

/// Work on observation `index`, with a context of its own: one thread, the seed observation_seed(seed, index), what is left of
/// the time limit. Called from worker threads.
using ObservationWork = std::function<void(std::size_t index, const RunContext& run)>;

/// Calls `work` once for each of `indices`, side by side, and reports progress. A single one gets all threads. Those that were
/// not begun when the time limit was over or a stop was requested are left out.
///
/// Errors   what `work` throws
void over_observations(std::span<const std::size_t> indices, const RunContext& run,
                       const ObservationWork& work);

/// Draws of an observation that over_observations() left out: none, and the reason.
PosteriorDraws not_begun(const Prior& prior, const RunContext& run);

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
