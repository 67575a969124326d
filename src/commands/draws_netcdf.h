#pragma once

#include <span>
#include <vector>

#include "nrec/core/record.h"
#include "nrec/inference/posterior_draws.h"
#include "nrec/io/netcdf.h"
#include "nrec/priors/prior.h"

namespace nrec {

/// Draws as ArviZ reads them: groups posterior (one variable per parameter, [chain, draw]), sample_stats (log_ratio, and
/// lp, the unnormalised log posterior density, where the prior has a density) and observed_data (x). Names that NetCDF
/// cannot hold are changed; long_name keeps the own one. `record` gives seed, versions, command line and time.
std::vector<NetcdfGroup> draws_groups(const PosteriorDraws& draws, const Prior& prior,
                                      std::span<const double> x_o, const Record& record);

}  // namespace nrec
