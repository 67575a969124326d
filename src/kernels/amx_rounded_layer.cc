// Hidden layers by AMX whose operands are rounded once: nrec/kernels/pair_kernels.h says what each function does. Compiled with its own
// flags: nothing here may be inlined into other files, so no std containers.
#include "kernels/amx_rounded_layer.h"

#include <immintrin.h>

#include "kernels/amx_tiles.h"

namespace nrec::amx {
namespace {

static_assert(kBlock % RoundedLayer::kBlockRows == 0 && RoundedLayer::kBlockRows % 2 == 0);

/// Where the rows end that come with rows `first` to first + rows of m: zeros follow the last to whole tiles.
inline std::size_t end_of_block(std::size_t first, std::size_t rows, std::size_t m) {
  return first + rows < m ? first + rows : (m + kBlock - 1) / kBlock * kBlock;
}

void round_rows(const float* a, std::size_t lda, std::size_t rows, std::size_t first, std::size_t m,
                std::size_t k, float* operand) {
  auto* out = reinterpret_cast<std::uint16_t*>(operand);
  const std::size_t across = tiles_of(k);
  stay_awake();
  for (std::size_t r = first; r < end_of_block(first, rows, m); ++r)
    round_row(r < m ? a + (r - first) * lda : a, r < m ? k : 0, across,
              out + (r / kSide * across * kSide + r % kSide) * kTileDepth);
}

void forward(const float* operand, std::size_t m, std::size_t k, const float* packed, std::size_t n,
             const float* bias, const float* add, float* c, std::size_t ldc, const Ahead* ahead) {
  multiply_all(reinterpret_cast<const std::uint16_t*>(operand), m, tiles_of(k),
               reinterpret_cast<const std::uint16_t*>(packed), tiles_of(k) * kTile, n, bias, add, c, ldc,
               ahead);
}

/// Words of two registers side by side: columns 0-3, 8-11, 16-19, 24-27, and the others.
struct Interleaved {
  __m512i low, high;
};
inline Interleaved interleave_words(__m512i even, __m512i odd) {
  return {_mm512_unpacklo_epi16(even, odd), _mm512_unpackhi_epi16(even, odd)};
}

/// 32 columns of a row: whole registers, or with zeros beyond the first `count`.
struct WholeColumns {
  static __m512 low(const float* row) { return _mm512_loadu_ps(row); }
  static __m512 high(const float* row) { return _mm512_loadu_ps(row + kSide); }
};
struct SomeColumns {
  std::size_t count;
  __m512 low(const float* row) const { return _mm512_maskz_loadu_ps(lanes(count), row); }
  __m512 high(const float* row) const {
    return count > kSide ? _mm512_maskz_loadu_ps(lanes(count - kSide), row + kSide) : _mm512_setzero_ps();
  }
};

/// Rows `first` to `last` and 32 of their columns as a left operand of `across` tiles, and as tiles `next` numbers apart of a right one
/// that sums over rows; d has the first `rows` of them, zeros follow. Adds the column sums to `sums`, which has room for `count`.
template <class Columns>
inline void round_both(const Columns& columns, const float* d, std::size_t ldd, std::size_t rows,
                       std::size_t first, std::size_t last, std::size_t count, std::size_t across,
                       std::size_t next, std::uint16_t* left, std::uint16_t* right, float* sums) {
  const __m512i first_lanes = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
  const __m512i last_lanes = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
  __m512 low_sum = _mm512_setzero_ps(), high_sum = _mm512_setzero_ps();
  const auto round = [&](std::size_t row) {
    if (row >= rows) return _mm512_setzero_si512();
    const __m512 low = columns.low(d + row * ldd), high = columns.high(d + row * ldd);
    low_sum = _mm512_add_ps(low_sum, low);
    high_sum = _mm512_add_ps(high_sum, high);
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
  };
  for (std::size_t row = first; row < last; row += 2) {
    const __m512i even = round(row - first), odd = round(row + 1 - first);
    std::uint16_t* to = left + (row / kSide * across * kSide + row % kSide) * kTileDepth;
    _mm512_storeu_si512(to, even);
    _mm512_storeu_si512(to + kTileDepth, odd);
    const Interleaved pairs = interleave_words(even, odd);
    to = right + row / kTileDepth * kTile + row % kTileDepth * kSide;
    _mm512_storeu_si512(to, _mm512_permutex2var_epi64(pairs.low, first_lanes, pairs.high));
    _mm512_storeu_si512(to + next, _mm512_permutex2var_epi64(pairs.low, last_lanes, pairs.high));
  }
  const __mmask16 low_lanes = lanes(count), high_lanes = lanes(count > kSide ? count - kSide : 0);
  _mm512_mask_storeu_ps(sums, low_lanes, _mm512_add_ps(_mm512_maskz_loadu_ps(low_lanes, sums), low_sum));
  _mm512_mask_storeu_ps(sums + kSide, high_lanes,
                        _mm512_add_ps(_mm512_maskz_loadu_ps(high_lanes, sums + kSide), high_sum));
}

/// Where the operands of a way back lie in `work`.
struct Work {
  std::uint16_t *left, *right, *transposed;
  std::size_t down;  // tiles of rows
  Work(float* work, std::size_t m, std::size_t n)
      : left(reinterpret_cast<std::uint16_t*>(work)),
        right(left + 2 * operand_floats(m, n)),
        transposed(right + 2 * operand_floats(m, n)),
        down(tiles_of(m)) {}
};

void round_gradient(const float* d, std::size_t ldd, std::size_t rows, std::size_t first, std::size_t m,
                    std::size_t n, float* work, float* db) {
  const Work at(work, m, n);
  const std::size_t across = tiles_of(n), next = at.down * kTile, last = end_of_block(first, rows, m);
  stay_awake();
  for (std::size_t j = 0; j < n; j += kTileDepth) {
    std::uint16_t* left = at.left + j / kTileDepth * kTile;
    std::uint16_t* right = at.right + j / kSide * next;
    if (n - j >= kTileDepth) {
      round_both(WholeColumns(), d + j, ldd, rows, first, last, kTileDepth, across, next, left, right,
                 db + j);
    } else {
      round_both(SomeColumns{n - j}, d + j, ldd, rows, first, last, n - j, across, next, left, right, db + j);
    }
  }
  stay_awake();
}

/// The transpose of a left operand [rows, k] as one that sums over its rows, [tiles of k][tiles of rows].
void transpose_left(const std::uint16_t* left, std::size_t rows, std::size_t k, std::uint16_t* out) {
  const std::size_t across = tiles_of(k), down = tiles_of(rows);
  for (std::size_t tile = 0; tile < down; ++tile) {
    for (std::size_t j = 0; j < across; ++j) {
      stay_awake();
      const std::uint16_t* from = left + (2 * tile * across + j) * kTile;
      __m512i low[16], high[16];
#pragma GCC unroll 16
      for (std::size_t p = 0; p < kSide; ++p) {  // rows 2 p, 2 p + 1 of 32, in two tiles one above the other
        const std::uint16_t* row = from + p / 8 * across * kTile + 2 * p % kSide * kTileDepth;
        const Interleaved pairs =
            interleave_words(_mm512_loadu_si512(row), _mm512_loadu_si512(row + kTileDepth));
        low[p] = pairs.low;
        high[p] = pairs.high;
      }
      transpose(low);
      transpose(high);
#pragma GCC unroll 16
      for (std::size_t r = 0; r < kSide; ++r) {
        const std::size_t column = r / 4 * 8 + r % 4;  // of 32; four further on in `high`
        std::uint16_t* to =
            out + ((2 * j + column / kSide) * down + tile) * kTile + column % kSide * kTileDepth;
        _mm512_storeu_si512(to, low[r]);
        _mm512_storeu_si512(to + 4 * kTileDepth, high[r]);
      }
    }
  }
}

void backward(const float* operand, std::size_t m, std::size_t features, std::size_t width,
              const float* packed_transposed, float* dw, float* e, std::size_t lde, float* work,
              const Ahead* ahead) {
  const Work at(work, m, width);
  transpose_left(reinterpret_cast<const std::uint16_t*>(operand), m, features, at.transposed);
  multiply_all(at.transposed, features, at.down, at.right, at.down * kTile, width, nullptr, dw, dw, width,
               ahead);
  // Features and width have as many tiles.
  multiply_all(at.left, m, tiles_of(width), reinterpret_cast<const std::uint16_t*>(packed_transposed),
               tiles_of(width) * kTile, width, nullptr, nullptr, e, lde, ahead);
}

}  // namespace

const RoundedLayer rounded_layer = {Tiles::begin, Tiles::end, round_rows, forward, round_gradient, backward};

}  // namespace nrec::amx
