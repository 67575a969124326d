#pragma once

#include <vector>

#include "nrec/inference/posterior.h"
#include "nrec/inference/posterior_draws.h"

namespace nrec {

/// Chains that disagree have an R-hat above this.
inline constexpr double kAgreeingRHat = 1.05;

/// Where chains have been: [chain][iteration][dim] in unbounded coordinates, equal lengths.
using VisitedPoints = std::vector<std::vector<std::vector<double>>>;

/// How many draws chains of `length` iterations hand over: every `thinning`-th.
inline std::size_t draws_of_chain(std::size_t length, std::size_t thinning) { return length / thinning; }

/// Fills theta, num_chains, log_ratio and names of `draws` with every `thinning`-th point of chains in the coordinates of
/// `space`, and the statistics r_hat (of all points, because few thinned ones would not judge the chains), ess_bulk,
/// ess_tail, mcse_mean, mcse_sd (of the draws), one number per parameter, num_chains and thinning.
///
/// At most `wanted` draws are handed over; when that cuts the last chain short, num_chains is 1. The status "complete" becomes
/// "chains disagree" when an R-hat is above kAgreeingRHat. Returns the largest R-hat, 0 if none is a number.
double collect_chains(const Posterior& posterior, const Prior& space, const VisitedPoints& visited,
                      std::size_t thinning, std::size_t wanted, PosteriorDraws& draws);

}  // namespace nrec
