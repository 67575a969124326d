#pragma once

#include <cstddef>
#include <vector>

#include "inference/chain_ensemble.h"
#include "inference/mode_jumps.h"
#include "inference/tempered_population.h"

namespace nrec {

/// `num_chains` points spread evenly over the population.
std::vector<TemperedPoint> chain_starts(const TemperedPopulation& population, std::size_t num_chains);

/// Jumps between the modes that the population has found.
ModeJumps mode_jumps(const TemperedPopulation& population);

}  // namespace nrec
