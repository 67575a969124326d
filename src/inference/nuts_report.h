#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "inference/nuts_tree.h"
#include "nrec/inference/posterior_draws.h"

namespace nrec {

/// What the transitions of every chain did: [chain][draw], equal lengths.
using KeptTransitions = std::vector<std::vector<TransitionStatistics>>;

/// Fills draws.per_draw, and the statistics acceptance_rate, tree_depth, n_steps, energy (means over draws), divergences and
/// reached_max_treedepth (counts). Nothing where there are no draws. Expects draws.theta to be there.
void add_transitions(const KeptTransitions& kept, PosteriorDraws& draws);

/// What happened, one sentence. `seconds_left` is the forecast of a run that ended early, negative if there is none.
std::string nuts_message(const PosteriorDraws& draws, std::size_t wanted, std::size_t num_chains,
                         double largest_r_hat, double seconds_left);

}  // namespace nrec
