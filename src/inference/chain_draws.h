#pragma once

#include <vector>

#include "nrec/inference/posterior.h"
#include "nrec/inference/posterior_draws.h"

namespace nrec {

/// Chains that disagree have an R-hat above this.
inline constexpr double kAgreeingRHat = 1.05;

/// What chains have kept: [chain][draw][dim] in unbounded coordinates, equal lengths.
using KeptChains = std::vector<std::vector<std::vector<double>>>;

/// Fills theta, num_chains, log_ratio and names of `draws` from chains in the coordinates of `space`, and the statistics
/// r_hat, ess_bulk, ess_tail, mcse_mean, mcse_sd (one number per parameter, of all kept draws) and num_chains.
///
/// At most `wanted` draws are handed over; when that cuts the last chain short, num_chains is 1. The status "complete" becomes
/// "chains disagree" when an R-hat is above kAgreeingRHat. Returns the largest R-hat, 0 if none is a number.
double collect_chains(const Posterior& posterior, const Prior& space, const KeptChains& kept,
                      std::size_t wanted, PosteriorDraws& draws);

}  // namespace nrec
