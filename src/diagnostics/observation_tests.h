#pragma once

#include "diagnostics/check_tests.h"
#include "nrec/diagnostics/full_check.h"

namespace nrec {

/// Whether x_o is like the held-out x.
void test_observation(const CheckData& data, const RunContext& run, CheckFindings& findings);

/// Draws at x_o, simulates at them, and compares with x_o. The draws' own verdict comes back as an item.
CheckItem test_predictive(const CheckData& data, std::size_t num_predicted, const RunContext& run,
                          CheckFindings& findings);

}  // namespace nrec
