#pragma once

#include "diagnostics/check_tests.h"
#include "nrec/diagnostics/full_check.h"

namespace nrec {

/// Normalisation and bounds on the information, into the record. Shapes   held_out has at least two rows
void record_information(const HeldOutRatios& held_out, Record& record);

/// Whether a classifier tells joint pairs from posterior draws at the same x, with equal weights ("classifier") and, where the ratio
/// is normalised, weighted by the mean ratio ("ratio"); and from prior draws, as a proof of its power.
/// Shapes   held_out has at least 50 rows, data.x at least as many
void test_classifiers(const HeldOutRatios& held_out, const CheckedRatio& ratio, const CheckData& data,
                      const RunContext& run, CheckFindings& findings);

/// The diagnostic at single thetas: x simulated there against the held-out x weighted by exp h(theta, x).
void test_thetas(const HeldOutRatios& held_out, const CheckedRatio& ratio, const CheckData& data,
                 int num_thetas, const RunContext& run, CheckFindings& findings);

}  // namespace nrec
