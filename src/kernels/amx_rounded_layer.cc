// Hidden layers by AMX whose operands are rounded once: nrec/kernels/pair_kernels.h says what each function does. Compiled with its own
// flags: nothing here may be inlined into other files, so no std containers.
#include "kernels/amx_rounded_layer.h"

#include <immintrin.h>

#include "kernels/amx_tiles.h"
#include "kernels/pair_kernels_isa.h"

namespace nrec::amx {
namespace {

static_assert(kBlock % RoundedLayer::kBlockRows == 0 && RoundedLayer::kBlockRows % 2 == 0);
static_assert(RoundedLayer::kPartRows % kBlock == 0);

/// Where the rows end that come with rows `first` to first + rows of m: zeros follow the last to whole tiles.
inline std::size_t end_of_block(std::size_t first, std::size_t rows, std::size_t m) {
  return first + rows < m ? first + rows : (m + kBlock - 1) / kBlock * kBlock;
}

/// 32 columns of a row: whole registers, or with zeros beyond the first `count`.
struct WholeColumns {
  static __m512 low(const float* row) { return _mm512_loadu_ps(row); }
  static __m512 high(const float* row) { return _mm512_loadu_ps(row + kSide); }
  static void store(float* row, __m512 low, __m512 high) {
    _mm512_storeu_ps(row, low);
    _mm512_storeu_ps(row + kSide, high);
  }
};
struct SomeColumns {
  std::size_t count;
  __m512 low(const float* row) const { return _mm512_maskz_loadu_ps(first_lanes(count), row); }
  __m512 high(const float* row) const {
    return count > kSide ? _mm512_maskz_loadu_ps(first_lanes(count - kSide), row + kSide)
                         : _mm512_setzero_ps();
  }
  void store(float* row, __m512 low, __m512 high) const {
    _mm512_mask_storeu_ps(row, first_lanes(count), low);
    if (count > kSide) _mm512_mask_storeu_ps(row + kSide, first_lanes(count - kSide), high);
  }
};

/// Columns of max(0, scale z + shift), or with the z of each row normalised first.
template <class Columns>
struct RectifiedColumns {
  Columns columns;
  __m512 low_scale, high_scale, low_shift, high_shift;

  RectifiedColumns(const Columns& of, const float* scale, const float* shift)
      : columns(of),
        low_scale(of.low(scale)),
        high_scale(of.high(scale)),
        low_shift(of.low(shift)),
        high_shift(of.high(shift)) {}

  template <class Row>
  __m512i rounded(const float* z, std::size_t column, const Row& row) const {
    const auto rectified = [](__m512 scale, __m512 value, __m512 shift) {
      return _mm512_max_ps(_mm512_fmadd_ps(scale, value, shift), _mm512_setzero_ps());
    };
    const __m512 low = row(columns.low(z + column)), high = row(columns.high(z + column));
    row.keep(columns, column, low, high);
    return reinterpret_cast<__m512i>(
        _mm512_cvtne2ps_pbh(rectified(high_scale, high, high_shift), rectified(low_scale, low, low_shift)));
  }
};

/// Rows that are what they were.
struct AsTheyAre {
  AsTheyAre operator[](std::size_t) const { return {}; }
  __m512 operator()(__m512 z) const { return z; }
  template <class Columns>
  static void keep(const Columns&, std::size_t, __m512, __m512) {}
};
/// Rows that are normalised, and kept so unless that is null.
template <bool kKeep>
struct NormalisedRows {
  const float *mean, *rstd;
  float* kept;
  std::size_t width;

  struct Row {
    __m512 centre, inverse;
    float* kept;
    __m512 operator()(__m512 z) const { return _mm512_mul_ps(_mm512_sub_ps(z, centre), inverse); }
    template <class Columns>
    void keep(const Columns& columns, std::size_t column, __m512 low, __m512 high) const {
      if constexpr (kKeep) columns.store(kept + column, low, high);
    }
  };
  Row operator[](std::size_t row) const {
    return {_mm512_set1_ps(mean[row]), _mm512_set1_ps(rstd[row]), kKeep ? kept + row * width : nullptr};
  }
};

/// Rows of z go to their places in a left operand, 32 columns after the others.
template <class Rows>
inline void round_rectified(const float* z, std::size_t count, std::size_t first, std::size_t rows,
                            std::size_t features, std::size_t width, const float* scale, const float* shift,
                            const Rows& row_of, float* operand) {
  auto* out = reinterpret_cast<std::uint16_t*>(operand);
  const std::size_t across = tiles_of(features), last = end_of_block(first, count, rows) - first;
  stay_awake();
  for (std::size_t j = 0; j < features; j += kTileDepth, out += kTile) {
    const auto to = [&](std::size_t r) {
      const std::size_t row = first + r;
      return out + (row / kSide * across * kSide + row % kSide) * kTileDepth;
    };
    const auto round = [&](const auto& columns) {
      for (std::size_t r = 0; r < count; ++r)
        _mm512_storeu_si512(to(r), columns.rounded(z + r * width, j, row_of[r]));
    };
    if (features - j >= kTileDepth) {
      round(RectifiedColumns(WholeColumns(), scale + j, shift + j));
    } else {
      round(RectifiedColumns(SomeColumns{features - j}, scale + j, shift + j));
    }
    for (std::size_t r = count; r < last; ++r) _mm512_storeu_si512(to(r), _mm512_setzero_si512());
  }
}

void round_affine_relu(const float* z, std::size_t count, std::size_t first, std::size_t rows,
                       std::size_t features, std::size_t width, const float* scale, const float* shift,
                       float* operand) {
  round_rectified(z, count, first, rows, features, width, scale, shift, AsTheyAre(), operand);
}

void round_layer_norm_relu(const float* z, std::size_t count, std::size_t first, std::size_t rows,
                           std::size_t features, std::size_t width, float eps, const float* gain,
                           const float* shift, float* mean, float* rstd, float* normalised, float* operand) {
  avx512::layer_norm_moments(z, count, width, features, eps, mean, rstd);
  if (normalised) {
    round_rectified(z, count, first, rows, features, width, gain, shift,
                    NormalisedRows<true>{mean, rstd, normalised, width}, operand);
  } else {
    round_rectified(z, count, first, rows, features, width, gain, shift,
                    NormalisedRows<false>{mean, rstd, nullptr, width}, operand);
  }
}

void forward(const float* operand, std::size_t rows, std::size_t features, const float* packed,
             std::size_t width, const float* bias, const float* add, float* c, std::size_t ldc,
             const Ahead* ahead) {
  const std::size_t tiles = tiles_of(features);
  multiply_all(reinterpret_cast<const std::uint16_t*>(operand), rows, tiles,
               reinterpret_cast<const std::uint16_t*>(packed), tiles * kTile, width, bias, add, c, ldc,
               ahead);
}

/// Of a row and at most 32 of its columns.
inline void mask_columns(std::uint32_t bits, std::size_t columns, float* d, float* dz) {
  const auto half = [&](std::uint32_t kept, __mmask16 here, std::size_t at) {
    const __m512 value = _mm512_maskz_loadu_ps(static_cast<__mmask16>(kept & here), d + at);
    _mm512_mask_storeu_ps(d + at, here, value);
    if (dz) _mm512_mask_storeu_ps(dz + at, here, _mm512_add_ps(_mm512_maskz_loadu_ps(here, dz + at), value));
  };
  half(bits, first_lanes(columns), 0);
  if (columns > kSide) half(bits >> kSide, first_lanes(columns - kSide), kSide);
}

void relu_backward(const std::uint32_t* mask, std::size_t rows, std::size_t width, float* d, float* dz) {
  for (std::size_t r = 0; r < rows; ++r, d += width) {
    if (r % RoundedLayer::kBlockRows == 0) stay_awake();
    for (std::size_t j = 0; j < width; j += kTileDepth, ++mask)
      mask_columns(*mask, width - j, d + j, dz ? dz + j : nullptr);
    if (dz) dz += width;
  }
}

/// Words of two registers side by side: columns 0-3, 8-11, 16-19, 24-27, and the others.
struct Interleaved {
  __m512i low, high;
};
inline Interleaved interleave_words(__m512i even, __m512i odd) {
  return {_mm512_unpacklo_epi16(even, odd), _mm512_unpackhi_epi16(even, odd)};
}

/// Rows `first` to `last` and 32 of their columns as a left operand of `across` tiles which begins with row `start`, and as tiles `next`
/// numbers apart of a right one that sums over rows; d has the first `rows` of them, zeros follow. Adds the column sums to `sums`, which has room for `count`.
template <class Columns>
inline void round_both(const Columns& columns, const float* d, std::size_t ldd, std::size_t rows,
                       std::size_t first, std::size_t last, std::size_t start, std::size_t count,
                       std::size_t across, std::size_t next, std::uint16_t* left, std::uint16_t* right,
                       float* sums) {
  const __m512i front_columns = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
  const __m512i back_columns = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
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
    const std::size_t of_left = row - start;
    std::uint16_t* to = left + (of_left / kSide * across * kSide + of_left % kSide) * kTileDepth;
    _mm512_storeu_si512(to, even);
    _mm512_storeu_si512(to + kTileDepth, odd);
    const Interleaved pairs = interleave_words(even, odd);
    to = right + row / kTileDepth * kTile + row % kTileDepth * kSide;
    _mm512_storeu_si512(to, _mm512_permutex2var_epi64(pairs.low, front_columns, pairs.high));
    _mm512_storeu_si512(to + next, _mm512_permutex2var_epi64(pairs.low, back_columns, pairs.high));
  }
  const __mmask16 low_lanes = first_lanes(count), high_lanes = first_lanes(count > kSide ? count - kSide : 0);
  _mm512_mask_storeu_ps(sums, low_lanes, _mm512_add_ps(_mm512_maskz_loadu_ps(low_lanes, sums), low_sum));
  _mm512_mask_storeu_ps(sums + kSide, high_lanes,
                        _mm512_add_ps(_mm512_maskz_loadu_ps(high_lanes, sums + kSide), high_sum));
}

void round_gradient(const float* d, std::size_t ldd, std::size_t count, std::size_t first, std::size_t m,
                    std::size_t width, std::size_t start, float* left, float* right, float* db) {
  const std::size_t across = tiles_of(width), next = tiles_of(m) * kTile,
                    last = end_of_block(first, count, m);
  auto* lefts = reinterpret_cast<std::uint16_t*>(left);
  auto* rights = reinterpret_cast<std::uint16_t*>(right);
  stay_awake();
  for (std::size_t j = 0; j < width; j += kTileDepth) {
    std::uint16_t* to_left = lefts + j / kTileDepth * kTile;
    std::uint16_t* to_right = rights + j / kSide * next;
    if (width - j >= kTileDepth) {
      round_both(WholeColumns(), d + j, ldd, count, first, last, start, kTileDepth, across, next, to_left,
                 to_right, db + j);
    } else {
      round_both(SomeColumns{width - j}, d + j, ldd, count, first, last, start, width - j, across, next,
                 to_left, to_right, db + j);
    }
  }
  stay_awake();
}

/// The transpose of rows of a left operand as one that sums over them: [tiles of features][`down` tiles of rows], from the tile `first` on.
void transpose_left(const std::uint16_t* left, std::size_t rows, std::size_t features, std::size_t first,
                    std::size_t down, std::uint16_t* out) {
  const std::size_t across = tiles_of(features);
  for (std::size_t tile = 0; tile < tiles_of(rows); ++tile) {
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
            out + ((2 * j + column / kSide) * down + first + tile) * kTile + column % kSide * kTileDepth;
        _mm512_storeu_si512(to, low[r]);
        _mm512_storeu_si512(to + 4 * kTileDepth, high[r]);
      }
    }
  }
}

void keep(const float* operand, std::size_t rows, std::size_t first, std::size_t m, std::size_t features,
          std::size_t width, float* kept, std::uint32_t* mask) {
  const auto* left = reinterpret_cast<const std::uint16_t*>(operand);
  transpose_left(left, rows, features, first / kTileDepth, tiles_of(m),
                 reinterpret_cast<std::uint16_t*>(kept));
  if (!mask) return;
  const std::size_t across = tiles_of(width);  // as many as of features
  for (std::size_t r = 0; r < rows; ++r) {
    const std::uint16_t* row = left + (r / kSide * across * kSide + r % kSide) * kTileDepth;
    for (std::size_t j = 0; j < across; ++j)
      *mask++ = _mm512_test_epi16_mask(_mm512_loadu_si512(row + j * kTile), _mm512_set1_epi16(0x7fff));
  }
}

void backward(const float* left, std::size_t rows, std::size_t, std::size_t width,
              const float* packed_transposed, float* e, std::size_t lde, const Ahead* ahead) {
  // Features and width have as many tiles.
  const std::size_t tiles = tiles_of(width);
  multiply_all(reinterpret_cast<const std::uint16_t*>(left), rows, tiles,
               reinterpret_cast<const std::uint16_t*>(packed_transposed), tiles * kTile, width, nullptr,
               nullptr, e, lde, ahead);
}

void weights(const float* kept, const float* right, std::size_t m, std::size_t features, std::size_t width,
             float* dw, const Ahead* ahead) {
  const std::size_t down = tiles_of(m);
  multiply_all(reinterpret_cast<const std::uint16_t*>(kept), features, down,
               reinterpret_cast<const std::uint16_t*>(right), down * kTile, width, nullptr, dw, dw, width,
               ahead);
}

}  // namespace

const RoundedLayer rounded_layer = {
    Tiles::begin, Tiles::end, stay_awake,     round_affine_relu, round_layer_norm_relu,
    forward,      keep,       round_gradient, backward,          relu_backward,
    weights};

}  // namespace nrec::amx
