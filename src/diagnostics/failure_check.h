#pragma once

#include <cstdint>
#include <optional>

#include "nrec/diagnostics/quick_check.h"

namespace nrec {

/// Failed rows that were left out of the training of an estimator.
std::int64_t num_dropped(const RatioEstimator& estimator);
/// Whether the loss fixes the mean ratio under the prior to 1: not NRE-B.
bool is_normalised(const RatioEstimator& estimator);

/// The check named "failures"; nothing where no row failed.
std::optional<CheckItem> failure_item(const RatioEstimator& estimator, const PosteriorDraws& draws,
                                      const RunContext& run, Record& record);

}  // namespace nrec
