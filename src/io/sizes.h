#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace nrec::io {

// Most dimensions of an array: NumPy's limit.
inline constexpr std::size_t kMaxDimensions = 32;

// Number of elements of a shape, or nothing when their bytes do not fit a signed 64-bit size. Dimensions of 0
// do not hide an overflow of the others, so products of a part of the shape are safe, too.
inline std::optional<std::size_t> element_count(const std::vector<std::size_t>& shape,
                                                std::size_t bytes_per_element) {
  std::size_t bytes = bytes_per_element > sizeof(double) ? bytes_per_element : sizeof(double);
  constexpr std::size_t kMostBytes = static_cast<std::size_t>(-1) / 2;
  std::size_t product = 1;
  bool empty = false;
  for (const std::size_t extent : shape) {
    if (extent == 0) {
      empty = true;
      continue;
    }
    if (extent > kMostBytes / bytes) return std::nullopt;
    bytes *= extent;
    product *= extent;
  }
  return empty ? 0 : product;
}

}  // namespace nrec::io
