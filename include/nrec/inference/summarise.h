#pragma once

#include <string>
#include <vector>

#include "nrec/inference/posterior_draws.h"

namespace nrec {

/// One parameter's marginal.
struct MarginalSummary {
  std::string name;
  double mean = 0.0, sd = 0.0;  // sd with n - 1
  double quantile05 = 0.0, quantile50 = 0.0,
         quantile95 = 0.0;  // linear interpolation between order statistics
  double ess = 0.0;         // effective sample size; S for independent draws; nan for a fixed parameter
  double mcse_mean = 0.0, mcse_sd = 0.0;  // Monte Carlo standard errors of mean and sd [Vehtari2021]
};

/// One summary per column of draws.theta; none when there are no draws.
///
/// ESS and standard errors are those in the statistics of the draws (ess_bulk, mcse_mean, mcse_sd), which know the chains;
/// without them the draws count as independent. sd and standard errors are nan for one draw.
std::vector<MarginalSummary> summarise(const PosteriorDraws& draws);

}  // namespace nrec
