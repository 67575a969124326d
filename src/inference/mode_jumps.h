#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "nrec/core/array.h"
#include "nrec/core/random.h"

namespace nrec {

/// Proposals that carry a chain from one mode to another: the difference of two points of a fixed archive is added.
///
///   u' = u + m (z_a - z_b),   a != b uniform;   m: 1 for every coordinate, or 0 or 1 for each at random, once 1 at least
///
/// The proposal is symmetric, so min(1, p(u') / p(u)) is its acceptance and any archive that does not change leaves the
/// posterior as it is; one that holds all modes connects them.
/// Source   [terBraak2008]
class ModeJumps {
 public:
  /// Shapes   archive [n, D] in the coordinates of the chains; without two rows a jump stays where it is
  explicit ModeJumps(Matrix<double> archive) : archive_(std::move(archive)) {}

  /// Shapes   from, to [D]
  void propose(std::span<const double> from, bool every_coordinate, RandomStream& random,
               std::span<double> to) const {
    std::copy(from.begin(), from.end(), to.begin());
    const std::uint64_t n = archive_.rows();
    if (n < 2) return;
    const auto a = static_cast<std::size_t>(random.integer(n));
    const auto b = static_cast<std::size_t>((a + 1 + random.integer(n - 1)) % n);
    const auto one = static_cast<std::size_t>(random.integer(to.size()));  // at least
    for (std::size_t d = 0; d < to.size(); ++d) {
      if (every_coordinate || d == one || random.uniform() < 0.5) to[d] += archive_(a, d) - archive_(b, d);
    }
  }

 private:
  Matrix<double> archive_;
};

}  // namespace nrec
