#pragma once

// The registers that small_mlp_products.h and small_mlp_masked_products.h are written for: Ymm in files with -mavx2 -mfma, Zmm in those
// with -mavx512f, too. Everything here belongs to the file that includes it: code of one instruction set must not be linked into another.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nrec::small_mlp {
namespace {

/// Eight columns.
struct Ymm {
  static constexpr std::size_t kWidth = 8;
  static constexpr int kRowsOfThree = 4, kRowsOfTwo = 6,
                       kRowsOfOne = 8;  // of a product: at most 12 sums of 16 registers
  static constexpr int kMaskedRows =
      2;  // of a product with a 0/1 matrix: enough sums to hide the latency of additions
  static constexpr std::size_t kMaskedVectors = 5, kTableFloats = 6144;  // 24 KB
  using Floats = __m256;
  using Numbers = __m256i;  // 32 bits each
  using Mask = __m256;      // all bits of a lane, or none

  static Floats zero() { return _mm256_setzero_ps(); }
  static Floats all(float value) { return _mm256_set1_ps(value); }
  static Floats load(const float* from) { return _mm256_load_ps(from); }
  static void store(float* to, Floats x) { _mm256_store_ps(to, x); }
  static Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Floats sub(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
  static Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats div(Floats a, Floats b) { return _mm256_div_ps(a, b); }
  static Floats max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
  static Floats sqrt(Floats a) { return _mm256_sqrt_ps(a); }
  static Floats fmadd(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

  static Mask positive(Floats a) { return _mm256_cmp_ps(a, zero(), _CMP_GT_OQ); }
  static Floats where(Mask mask, Floats a) { return _mm256_and_ps(a, mask); }
  static Numbers no_bits() { return _mm256_setzero_si256(); }
  static Numbers with_bit(Numbers bits, Mask mask, int bit) {
    return _mm256_or_si256(bits, _mm256_and_si256(_mm256_castps_si256(mask), _mm256_set1_epi32(bit)));
  }
  static void store(std::int32_t* to, Numbers bits) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to), bits);
  }
  /// A bit for each lane, the first in the lowest.
  static void store_bits(std::uint8_t* to, Mask mask) {
    *to = static_cast<std::uint8_t>(_mm256_movemask_ps(mask));
  }

  /// sums + w^2, eight columns after the other.
  static __m256 add_squares(__m256 sums, Floats w) { return _mm256_fmadd_ps(w, w, sums); }
};

#if defined(__AVX512F__)
/// Sixteen columns.
struct Zmm {
  static constexpr std::size_t kWidth = 16;
  static constexpr int kRowsOfThree = 8, kRowsOfTwo = 8, kRowsOfOne = 8;  // at most 24 sums of 32 registers
  static constexpr int kMaskedRows = 4;
  static constexpr std::size_t kMaskedVectors = 2, kTableFloats = 8192;  // 32 KB
  using Floats = __m512;
  using Numbers = __m512i;
  using Mask = __mmask16;

  static Floats zero() { return _mm512_setzero_ps(); }
  static Floats all(float value) { return _mm512_set1_ps(value); }
  static Floats load(const float* from) { return _mm512_load_ps(from); }
  static void store(float* to, Floats x) { _mm512_store_ps(to, x); }
  static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats sub(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
  static Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
  static Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
  static Floats sqrt(Floats a) { return _mm512_sqrt_ps(a); }
  static Floats fmadd(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

  static Mask positive(Floats a) { return _mm512_cmp_ps_mask(a, zero(), _CMP_GT_OQ); }
  static Floats where(Mask mask, Floats a) { return _mm512_maskz_mov_ps(mask, a); }
  static Numbers no_bits() { return _mm512_setzero_si512(); }
  static Numbers with_bit(Numbers bits, Mask mask, int bit) {
    return _mm512_mask_or_epi32(bits, mask, bits, _mm512_set1_epi32(bit));
  }
  static void store(std::int32_t* to, Numbers bits) { _mm512_store_si512(to, bits); }
  static void store_bits(std::uint8_t* to, Mask mask) { std::memcpy(to, &mask, sizeof mask); }

  static __m256 add_squares(__m256 sums, Floats w) {
    const __m256 low = _mm512_castps512_ps256(w);
    const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(w), 1));
    return _mm256_fmadd_ps(high, high, _mm256_fmadd_ps(low, low, sums));
  }
};
#endif

}  // namespace
}  // namespace nrec::small_mlp
