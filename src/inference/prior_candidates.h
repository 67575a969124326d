#pragma once

#include <algorithm>
#include <cstdint>

#include "nrec/core/array.h"
#include "nrec/core/run_context.h"
#include "nrec/priors/prior.h"

namespace nrec {

/// Candidates of one batch of a sampler that proposes from the prior: fixed, so that results do not depend on the machine.
inline constexpr std::size_t kCandidateBatch = 65536;

/// Candidates first_row .. first_row + theta.rows - 1 from the prior, on all threads; row i is a pure function of
/// (seed, stream, i).
///
/// Shapes   theta [n, D] out
inline void draw_candidates(const Prior& prior, const RunContext& run, Stream stream, std::uint64_t first_row,
                            MatrixView<double> theta) {
  constexpr std::size_t kRows = 4096;
  run.pool.run((theta.rows + kRows - 1) / kRows, [&](std::size_t task, int) {
    const std::size_t first = task * kRows;
    prior.sample(run.seed, stream, first_row + first,
                 theta.middle_rows(first, std::min(kRows, theta.rows - first)));
  });
}

}  // namespace nrec
