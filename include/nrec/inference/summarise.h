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
};

/// Shapes   one entry per column of draws.theta; empty when there are no draws; sd is nan for one draw
std::vector<MarginalSummary> summarise(const PosteriorDraws& draws);

}  // namespace nrec
