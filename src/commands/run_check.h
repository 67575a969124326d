#pragma once

#include <span>

#include "commands/sampling_stage.h"

namespace nrec {

/// The check of a run that has just drawn, at its level: quick, or the full check on the held-out rows together with the quick
/// check's items about the observation and its draws.
CheckReport check_of_run(const SamplingStage& stage, std::span<const PosteriorDraws> draws,
                         const RunContext& run);

}  // namespace nrec
