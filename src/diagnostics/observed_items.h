#pragma once

#include "nrec/diagnostics/quick_check.h"

namespace nrec {

// Items of the quick check that look at the observation and its draws; each writes its numbers into the record.

/// Whether the rows of x_o [R, M] lie in the range of the simulations.
CheckItem range_item(const RatioEstimator& estimator, MatrixView<const double> x_o, Record& record);

/// Whether `num_ranks` ranks of single rows can vouch for so many independent rows of one data set.
CheckItem iid_item(std::size_t num_rows, std::size_t num_ranks, Record& record);

/// How the draws are; of several sets, how the worst is. `num_observations`: how many sets were wanted, where some are missing.
CheckItem draws_item(std::span<const PosteriorDraws> all, Record& record, std::size_t num_observations = 0);

/// Thetas and log ratios of all draws as one set, for what is asked about the posteriors together. Where there are several rows
/// of x_o, log ratios are made comparable by their log_z.
PosteriorDraws pooled_draws(const ObservedDraws& observed);

}  // namespace nrec
