#include "nrec/core/random.h"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

#include "nrec/core/error.h"

namespace nrec {

RandomStream::RandomStream(std::uint64_t seed, Stream stream, std::uint64_t row)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{0u, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(row >> 32),
               static_cast<std::uint32_t>(stream)} {}

void RandomStream::refill() {
  const r123::Philox4x32::ctr_type counter = {{counter_[0], counter_[1], counter_[2], counter_[3]}};
  const r123::Philox4x32::key_type key = {{key_[0], key_[1]}};
  const auto block = r123::Philox4x32()(counter, key);
  for (int i = 0; i < 4; ++i) block_[i] = block[i];
  require_internal(++counter_[0] != 0, "a random stream ran past its period of 2^33 numbers");
  used_ = 0;
}

std::uint32_t RandomStream::bits32() {
  if (used_ == 4) refill();
  return block_[used_++];
}

std::uint64_t RandomStream::bits64() {
  const std::uint64_t low = bits32();
  return low | (static_cast<std::uint64_t>(bits32()) << 32);
}

double RandomStream::uniform() {
  // 52 random bits and a half step: the open interval (0, 1).
  return (static_cast<double>(bits64() >> 12) + 0.5) * 0x1.0p-52;
}

double RandomStream::uniform(double low, double high) { return low + (high - low) * uniform(); }

double RandomStream::normal() {
  if (has_spare_normal_) {
    has_spare_normal_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2.0 * std::log(uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_normal_ = true;
  return radius * std::cos(angle);
}

std::uint64_t RandomStream::integer(std::uint64_t bound) {
  require_internal(bound >= 1, "RandomStream::integer needs bound >= 1");
  // Lemire's multiply-and-reject: exact for every bound.
  unsigned __int128 product = static_cast<unsigned __int128>(bits64()) * bound;
  auto low = static_cast<std::uint64_t>(product);
  if (low < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (low < threshold) {
      product = static_cast<unsigned __int128>(bits64()) * bound;
      low = static_cast<std::uint64_t>(product);
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

void RandomStream::shuffle(std::span<std::uint32_t> values) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[integer(i)]);
}

}  // namespace nrec
