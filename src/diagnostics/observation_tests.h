#pragma once

#include "diagnostics/check_tests.h"
#include "nrec/diagnostics/full_check.h"

namespace nrec {

/// Draws of an observation, and simulations there, from which on it can be held against them.
inline constexpr std::size_t kLeastPredicted = 50;

/// Whether the rows of x_o are like the held-out x.
void test_observation(const CheckData& data, const RunContext& run, CheckFindings& findings);

/// Draws at every observation, simulates at the draws, and compares. The draws' own verdict comes back as an item. A stop request or
/// the time limit of `run` leaves later observations out.
CheckItem test_predictive(const CheckData& data, std::size_t num_predicted, const RunContext& run,
                          CheckFindings& findings);

}  // namespace nrec
