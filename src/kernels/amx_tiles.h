#pragma once

// Matrices of 16-bit numbers in tiles of 1 KB, sixteen rows of 32 numbers. A tile of the left operand has 16 rows and
// 32 numbers of the depth that a product sums over; one of the right operand has 16 pairs of that depth and 16
// columns, the two numbers of a pair side by side. Only files of AMX include this: all have the same flags.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/lane_masks.h"
#include "nrec/kernels/pair_kernels.h"

namespace nrec::amx {

constexpr std::size_t kSide = 16;       // rows of every tile; columns of a tile of sums
constexpr std::size_t kTileDepth = 32;  // numbers that one product of tiles sums over
constexpr std::size_t kTile = kSide * kTileDepth;
constexpr std::size_t kBlock =
    2 * kSide;  // rows and columns of sums at once: four tiles, beside two of either operand

/// All eight tiles whole, from the first begin() of a thread to its last end(): threads which do other things carry no tiles about.
class Tiles {
 public:
  Tiles() { begin(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
  ~Tiles() { end(); }

  static void begin();
  static void end();
};

/// Units that multiply tiles fall asleep when they had nothing to do for some 500 cycles, and take a thousand and more to
/// wake up: what comes between products has a product now and then whose result nobody wants. Tiles must be in use.
inline void stay_awake() { _tile_dpbf16ps(0, 4, 6); }

inline std::size_t least(std::size_t a, std::size_t b) { return a < b ? a : b; }
inline std::size_t tiles_of(std::size_t depth) { return (depth + kTileDepth - 1) / kTileDepth; }

/// Sixteen of one row of floats and sixteen of the next, side by side.
inline __m512i interleave(__m512 low, __m512 high) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                         22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
}

/// A row of a left operand, whose `across` tiles are next to each other; zeros from column `depth` on.
inline void round_row(const float* a, std::size_t depth, std::size_t across, std::uint16_t* out) {
  for (std::size_t i = 0; i < across * kTileDepth; i += kTileDepth, out += kTile) {
    const auto columns = [&](std::size_t first) {
      return first < depth ? _mm512_maskz_loadu_ps(first_lanes(depth - first), a + first)
                           : _mm512_setzero_ps();
    };
    const __m512 low = columns(i), high = columns(i + kSide);
    _mm512_storeu_si512(out, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
}

/// Rows of 32-bit numbers <-> columns.
inline void transpose(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // r[4 i + q] has columns q, 4 + q, 8 + q and 12 + q of rows 4 i to 4 i + 3, one in each quarter.
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    const __m512i even_low = _mm512_shuffle_i32x4(r[q], r[4 + q], 0x88);
    const __m512i even_high = _mm512_shuffle_i32x4(r[8 + q], r[12 + q], 0x88);
    const __m512i odd_low = _mm512_shuffle_i32x4(r[q], r[4 + q], 0xdd);
    const __m512i odd_high = _mm512_shuffle_i32x4(r[8 + q], r[12 + q], 0xdd);
    t[q] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
    t[8 + q] = _mm512_shuffle_i32x4(even_low, even_high, 0xdd);
    t[4 + q] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
    t[12 + q] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = t[i];
}

/// Products of a left operand of `rows` rows with columns of tiles that are `next` numbers apart, block by block.
void multiply_all(const std::uint16_t* left, std::size_t rows, std::size_t tiles, const std::uint16_t* right,
                  std::size_t next, std::size_t n, const float* bias, const float* add, float* c,
                  std::size_t ldc, const Ahead* ahead = nullptr);

}  // namespace nrec::amx
