#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "diagnostics/check_tests.h"
#include "nrec/diagnostics/held_out.h"

namespace nrec {

/// Tests and curves of the ranks: per parameter, of highest-density regions, of distances (TARP). The seed is that of bands.
/// Shapes   names [D]; held_out has at least two rows
void test_calibration(const HeldOutRatios& held_out, std::span<const std::string> names, std::uint64_t seed,
                      CheckFindings& findings);

}  // namespace nrec
