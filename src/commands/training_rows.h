#pragma once

#include <string>

#include "nrec/simulation/simulation_set.h"
#include "nrec/training/ratio_estimator.h"

namespace nrec {

/// Why simulations seem to be those that an estimator was trained on, or "" when nothing says so.
///
/// Rows that hold the smallest and the largest number of every column of x of the training, to the last bit, are these rows. A part of
/// them cannot be recognised.
std::string training_rows_sentence(const RatioEstimator& estimator, const SimulationSet& simulations);

}  // namespace nrec
