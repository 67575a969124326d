#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <utility>

namespace nrec {

/// Random numbers as numpy's RandomState makes them: MT19937 seeded by one 32-bit number, turned into uniforms, polar
/// normals, integers and shuffles. Only for what the published benchmark drew or scored with it; everything else uses
/// RandomStream.
class Mt19937Stream {
 public:
  explicit Mt19937Stream(std::uint32_t seed) : engine_(seed) {}

  /// Uniform in [0, 1), 53 bits from two words, high word first.
  double uniform() {
    const std::uint32_t high = word() >> 5;
    const std::uint32_t low = word() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;  // (high 2^26 + low) / 2^53
  }

  /// Standard normal, polar method: of a pair the second coordinate comes first.
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    double p = 0.0;
    double q = 0.0;
    double square = 0.0;
    do {
      p = 2.0 * uniform() - 1.0;
      q = 2.0 * uniform() - 1.0;
      square = p * p + q * q;
    } while (square >= 1.0 || square == 0.0);
    const double scale = std::sqrt(-2.0 * std::log(square) / square);
    spare_ = scale * p;
    has_spare_ = true;
    return scale * q;
  }

  /// Uniform integer in 0 .. last: words masked to the bits of `last` until one fits; last = 0 draws nothing.
  std::uint32_t integer(std::uint32_t last) {
    if (last == 0) return 0;
    const std::uint32_t mask = 0xFFFFFFFFu >> __builtin_clz(last);
    std::uint32_t value = word() & mask;
    while (value > last) value = word() & mask;
    return value;
  }

  /// Fisher-Yates shuffle from the back, in place.
  void shuffle(std::span<std::uint32_t> values) {
    for (std::size_t i = values.size(); i-- > 1;) {
      std::swap(values[i], values[integer(static_cast<std::uint32_t>(i))]);
    }
  }

 private:
  std::uint32_t word() { return static_cast<std::uint32_t>(engine_()); }

  std::mt19937 engine_;
  bool has_spare_ = false;
  double spare_ = 0.0;
};

}  // namespace nrec
