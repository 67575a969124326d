#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "diagnostics/check_tests.h"
#include "nrec/diagnostics/held_out.h"

namespace nrec {

/// Tests and curves of the ranks: per parameter, of highest-density regions, of distances (TARP).
/// Shapes   names [D]; held_out has at least two rows
void test_calibration(const HeldOutRatios& held_out, std::span<const std::string> names,
                      CheckFindings& findings);

/// Bands of the curves at 95 %: binomial for coverage, simultaneous for distribution functions, bootstrap for TARP.
void record_bands(const HeldOutRatios& held_out, std::uint64_t seed, Record& record);

}  // namespace nrec
