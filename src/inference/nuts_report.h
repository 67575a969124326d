#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "inference/nuts_tree.h"
#include "nrec/inference/posterior_draws.h"

namespace nrec {

/// What the transitions of every chain after the warm-up did: [chain][iteration], equal lengths.
using Transitions = std::vector<std::vector<TransitionStatistics>>;

/// Fills draws.per_draw from every `thinning`-th transition, and the statistics acceptance_rate, tree_depth, n_steps, energy
/// (means) and divergences, reached_max_treedepth (counts) from all. Expects draws.theta to be there; does nothing where it has no
/// rows.
void add_transitions(const Transitions& transitions, std::size_t thinning, PosteriorDraws& draws);

/// What happened, one sentence. `seconds_left` is the forecast of a run that ended early, negative if there is none.
std::string nuts_message(const PosteriorDraws& draws, std::size_t wanted, std::size_t num_chains,
                         double largest_r_hat, double seconds_left);

}  // namespace nrec
