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

/// Monte Carlo standard errors of the mean, of the standard deviation and of the quantile `q` in (0, 1).
///
///   mean      sd / sqrt(ESS of the values)
///   sd        sqrt((m4 - m2^2) / (4 m2 ESS of the squared distances from the mean))
///   quantile  half the distance between the order statistics at the 16 % and 84 % points of the beta distribution that
///             the ESS of "at most the quantile" gives
///
/// nan with fewer than 4 draws a chain; the errors of equal values are 0 or nan. Source [Vehtari2021]
double mcse_mean(const Chains& chains);
double mcse_sd(const Chains& chains);
double mcse_quantile(const Chains& chains, double q);

}  // namespace nrec
