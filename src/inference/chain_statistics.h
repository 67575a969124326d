#pragma once

#include <cstddef>
#include <vector>

namespace nrec {

/// Draws of one quantity by chain: [chains][draws], equal lengths.
using Chains = std::vector<std::vector<double>>;

/// Rank-normalised split R-hat: the larger of that of the values and of their distances from the median.
/// nan with fewer than 4 draws a chain or when all values are equal. Source [Vehtari2021]
double split_r_hat(const Chains& chains);
/// Effective sample size for the mean (rank-normalised) and for the 5 % and 95 % quantiles, of split chains.
/// nan with fewer than 4 draws a chain. Source [Vehtari2021], [Geyer1992]
double bulk_ess(const Chains& chains);
double tail_ess(const Chains& chains);

}  // namespace nrec
