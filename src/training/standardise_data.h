#pragma once

#include "training/training_data.h"

namespace nrec {

/// Fits the standardisers of `data`, whose split is done, and applies them to all simulations.
///
/// standardise_from "training": statistics of all simulations. "first_batch": mean and unbiased sd of theta (in unbounded space) and
/// x of the mini-batch that training takes first, an sd below kTinyScale raised to it.
///
/// Errors   DomainError: constant theta, a row of the first mini-batch of regime "joint" failed; UnsupportedError, ShapeError: the
///          simulator that has to make it, check_joint_simulator()
/// Source   [Miller2022, app. B]
void standardise(const Prior& prior, const SimulationSet& simulations, const TrainingOptions& options,
                 const RunContext& run, const Simulator* simulator, TrainingData& data);

}  // namespace nrec
