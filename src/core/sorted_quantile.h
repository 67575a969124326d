#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace nrec {

/// Quantile of sorted numbers, linear between order statistics (numpy's default). q in [0, 1]; at least one number.
inline double sorted_quantile(std::span<const double> sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace nrec
