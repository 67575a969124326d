#pragma once

#include "nrec/inference/sample.h"

namespace nrec {

/// Rejection if acceptance allows, else importance resampling if its effective sample size does, else
/// the no-U-turn sampler where there is a gradient and eight dimensions or more, else slice sampling; slice sampling also follows a
/// no-U-turn run with divergences or disagreeing chains. The
/// message ends with the reason. Evaluations are not done twice: whichever of the first two is chosen goes on from the
/// candidates that both forecasts were made from. The budget is one for all.
/// Source   docs/methods/sampling.md, docs/decisions/0005-importance-between-rejection-and-slice.md
PosteriorDraws sample_automatically(const Posterior& posterior, const SamplingOptions& options,
                                    const RunContext& run);

}  // namespace nrec
