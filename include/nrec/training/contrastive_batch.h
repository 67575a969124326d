#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/random.h"
#include "nrec/losses/contrastive_loss.h"

namespace nrec {

/// Fills the candidate lists of a mini-batch: column 0 is the row's own theta, the others are rows of the pool of thetas.
///
/// Rows of the batch sit at positions own_first .. own_first + B - 1 of a pool of `pool_size` thetas in random order.
/// Shared contrast sets: every row takes the thetas at the same K distinct circular distances from its own. The order is
/// random, so each row's set is a draw without replacement of thetas other than its own.
/// Independent: every row and each of the two terms draws its own set.
///
/// Shapes   candidates [B, loss.num_columns()] out
/// Errors   ShapeError: pool_size - 1 < loss.distinct_contrastive()
/// Source   [Miller2022, sec. 3]; decisions 0003
void fill_candidates(const ContrastiveLoss& loss, std::size_t own_first, std::size_t pool_size,
                     RandomStream& random, Matrix<std::uint32_t>& candidates);

/// `count` distinct numbers of 1 .. bound, in random order (partial Fisher-Yates).
std::vector<std::uint32_t> distinct_numbers(std::size_t count, std::size_t bound, RandomStream& random);

}  // namespace nrec
