#pragma once

#include <vector>

#include "commands/inputs.h"
#include "nrec/core/record.h"
#include "nrec/inference/posterior_draws.h"
#include "nrec/io/netcdf.h"
#include "nrec/priors/prior.h"

namespace nrec {

/// Draws as ArviZ reads them: groups posterior (one variable per parameter, [chain, draw]), sample_stats (log_ratio, and
/// lp, the unnormalised log posterior density, where the prior has a density) and observed_data (x). Those of a batch have a
/// third axis, observation, with nan where an observation has fewer draws. Names that NetCDF cannot hold are changed;
/// long_name keeps the own one. `record` gives seed, versions, command line and time.
std::vector<NetcdfGroup> draws_groups(const std::vector<PosteriorDraws>& all, const Prior& prior,
                                      const Observation& observation, const Record& record);

}  // namespace nrec
