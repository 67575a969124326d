// AMX: products of hidden layers with bf16 operands in tiles and float32 sums; everything else is that of AVX-512. Compiled with its
// own flags: nothing here may be inlined into other files, so no std containers.
//
// A matrix of 16-bit numbers is kept as tiles of 1 KB, sixteen rows of 32 numbers. A tile of the left operand has 16 rows and 32
// numbers of the depth that a product sums over; one of the right operand has 16 pairs of that depth and 16 columns, the two
// numbers of a pair side by side.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/fetch_ahead.h"
#include "kernels/pair_kernels_isa.h"

namespace nrec::amx {
namespace {

constexpr std::size_t kSide = 16;       // rows of every tile; columns of a tile of sums
constexpr std::size_t kTileDepth = 32;  // numbers that one product of tiles sums over
constexpr std::size_t kTile = kSide * kTileDepth;
constexpr std::size_t kBlock =
    2 * kSide;  // rows and columns of sums at once: four tiles, beside two of either operand
constexpr std::size_t kMostDepth = 512;                 // of a left operand that is rounded at once
constexpr std::size_t kMostLeft = kBlock * kMostDepth;  // its numbers: more rows where there is less depth
static_assert(kBlock % RoundedLayer::kBlockRows == 0 && RoundedLayer::kBlockRows % 2 == 0);
constexpr std::size_t kPart = 128;  // rows and columns of the operands of a gradient that are rounded at once
constexpr int kStride = 64;         // bytes from row to row of a tile

/// The compiler's tile instructions do not tell it that they read and write memory: this does.
inline void memory_is_used() { __asm__ volatile("" ::: "memory"); }

struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {};
  std::uint8_t rows[16] = {};
};

thread_local bool tiles_are_in_use = false;

/// All eight tiles whole; released by whom they were asked for first, so that threads which do other things carry no tiles about.
class Tiles {
 public:
  Tiles() : is_first_(!tiles_are_in_use) {
    if (is_first_) begin();
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
  ~Tiles() {
    if (is_first_) end();
  }

  static void begin() {
    TileConfiguration configuration;
    for (int i = 0; i < 8; ++i) {
      configuration.bytes_per_row[i] = kStride;
      configuration.rows[i] = kSide;
    }
    memory_is_used();
    _tile_loadconfig(&configuration);
    tiles_are_in_use = true;
  }
  static void end() {
    _tile_release();
    tiles_are_in_use = false;
  }

 private:
  bool is_first_;
};

/// Units that multiply tiles fall asleep when they had nothing to do for some 500 cycles, and take a thousand and more to wake up: what
/// comes between products has a product now and then whose result nobody wants. Tiles must be in use.
inline void stay_awake() { _tile_dpbf16ps(0, 4, 6); }

inline std::size_t least(std::size_t a, std::size_t b) { return a < b ? a : b; }
inline std::size_t tiles_of(std::size_t depth) { return (depth + kTileDepth - 1) / kTileDepth; }

/// The first `count` of sixteen lanes.
inline __mmask16 lanes(std::size_t count) {
  return static_cast<__mmask16>(count >= kSide ? 0xffff : (1u << count) - 1u);
}

/// Sixteen of one row of floats and sixteen of the next, side by side.
inline __m512i interleave(__m512 low, __m512 high) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                         22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
}

/// Sixteen columns of rows i and i + 1 of a matrix of `rows`, side by side; zeros beyond both.
inline __m512i pair_of_rows(const float* w, std::size_t ldw, std::size_t i, std::size_t rows,
                            __mmask16 here) {
  const float* row = w + i * ldw;
  const __m512 low = i < rows ? _mm512_maskz_loadu_ps(here, row) : _mm512_setzero_ps();
  const __m512 high = i + 1 < rows ? _mm512_maskz_loadu_ps(here, row + ldw) : _mm512_setzero_ps();
  return interleave(low, high);
}

/// W[depth, columns] as a right operand, [tiles of columns][tiles of depth]; zeros around.
void round_right(const float* w, std::size_t ldw, std::size_t depth, std::size_t columns,
                 std::uint16_t* out) {
  const std::size_t whole = tiles_of(depth) * kTileDepth, next = whole * kSide;
  for (std::size_t i = 0; i < whole; i += 2, out += kTileDepth) {
    std::uint16_t* row = out;
    for (std::size_t j = 0; j < columns; j += kSide, row += next)
      _mm512_storeu_si512(row, pair_of_rows(w + j, ldw, i, depth, lanes(columns - j)));
  }
}

/// A row of a left operand, whose `across` tiles are next to each other; zeros from column `depth` on.
inline void round_row(const float* a, std::size_t depth, std::size_t across, std::uint16_t* out) {
  for (std::size_t i = 0; i < across * kTileDepth; i += kTileDepth, out += kTile) {
    const std::size_t rest = i < depth ? depth - i : 0;
    const __m512 low = _mm512_maskz_loadu_ps(lanes(rest), a + i);
    const __m512 high = _mm512_maskz_loadu_ps(lanes(rest > kSide ? rest - kSide : 0), a + i + kSide);
    _mm512_storeu_si512(out, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
}

/// A[rows, depth] as a left operand, [tiles of rows][tiles of depth]; zeros around.
void round_left(const float* a, std::size_t lda, std::size_t rows, std::size_t depth, std::uint16_t* out) {
  const std::size_t across = tiles_of(depth);
  for (std::size_t r = 0; r < (rows + kBlock - 1) / kBlock * kBlock; ++r, a += lda)
    round_row(a, r < rows ? depth : 0, across, out + (r / kSide * across * kSide + r % kSide) * kTileDepth);
}

/// Where the rows end that come with rows `first` to first + rows of m: zeros follow the last to whole tiles.
inline std::size_t end_of_block(std::size_t first, std::size_t rows, std::size_t m) {
  return first + rows < m ? first + rows : (m + kBlock - 1) / kBlock * kBlock;
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

/// The transpose of A[depth, columns] as a left operand, [tiles of columns][tiles of depth]: its tiles are those of a right
/// operand with pairs and columns exchanged.
void round_left_transposed(const float* a, std::size_t lda, std::size_t depth, std::size_t columns,
                           std::uint16_t* out) {
  const std::size_t tiles = tiles_of(depth);
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    for (std::size_t j = 0; j < columns; j += kSide) {
      const __mmask16 here = lanes(columns - j);
      __m512i rows[16];
#pragma GCC unroll 16
      for (std::size_t p = 0; p < kSide; ++p)
        rows[p] = pair_of_rows(a + j, lda, tile * kTileDepth + 2 * p, depth, here);
      transpose(rows);
      std::uint16_t* to = out + (j / kSide * tiles + tile) * kTile;
#pragma GCC unroll 16
      for (std::size_t r = 0; r < kSide; ++r) _mm512_storeu_si512(to + r * kTileDepth, rows[r]);
    }
  }
}

/// Tiles of an operand: `next` numbers from one row or column of tiles to the next.
struct Operand {
  const std::uint16_t* start;
  std::size_t next;
};

/// Where the sums of a block begin, as tiles are loaded: nowhere, with zeros; with a stride of 0 all rows are the same.
struct Start {
  const float* sums;
  std::size_t stride;  // bytes
};

/// sums = start + the product over `tiles` tiles of depth; only the first R x V tiles of sums are computed.
template <int R, int V>
void multiply(const Operand& a, const Operand& b, std::size_t tiles, const Start& start, float* sums,
              std::size_t stride) {
  memory_is_used();
  if (start.sums) {
    _tile_loadd(0, start.sums, start.stride);
    if constexpr (V == 2) _tile_loadd(1, start.sums + kSide, start.stride);
    const float* second = start.sums + start.stride / sizeof(float) * kSide;
    if constexpr (R == 2) _tile_loadd(2, second, start.stride);
    if constexpr (R == 2 && V == 2) _tile_loadd(3, second + kSide, start.stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::size_t i = 0; i < tiles * kTile; i += kTile) {
    _tile_loadd(4, a.start + i, kStride);
    _tile_loadd(6, b.start + i, kStride);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (V == 2) {
      _tile_loadd(7, b.start + b.next + i, kStride);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (R == 2) {
      _tile_loadd(5, a.start + a.next + i, kStride);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (V == 2) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, sums, stride);
  if constexpr (V == 2) _tile_stored(1, sums + kSide, stride);
  float* second = sums + stride / sizeof(float) * kSide;
  if constexpr (R == 2) _tile_stored(2, second, stride);
  if constexpr (R == 2 && V == 2) _tile_stored(3, second + kSide, stride);
  memory_is_used();
}

/// C[rows, columns] = the product + bias + add; at most kBlock of either.
void multiply_block(const Operand& a, const Operand& b, std::size_t tiles, std::size_t rows,
                    std::size_t columns, const float* bias, const float* add, float* c, std::size_t ldc) {
  const std::size_t stride = ldc * sizeof(float);
  if (rows == kBlock && columns == kBlock && !(bias && add)) {
    const Start start = add ? Start{add, stride} : Start{bias, 0};
    return multiply<2, 2>(a, b, tiles, start, c, stride);
  }
  alignas(64) float sums[kBlock * kBlock];
  const bool tall = rows > kSide, wide = columns > kSide;
  (tall ? (wide ? multiply<2, 2> : multiply<2, 1>) : (wide ? multiply<1, 2> : multiply<1, 1>))(
      a, b, tiles, Start{nullptr, 0}, sums, kBlock * sizeof(float));
  for (std::size_t j = 0; j < columns; j += kSide) {
    const __mmask16 here = lanes(columns - j);
    const __m512 offset = bias ? _mm512_maskz_loadu_ps(here, bias + j) : _mm512_setzero_ps();
    for (std::size_t r = 0; r < rows; ++r) {
      __m512 value = _mm512_add_ps(_mm512_load_ps(sums + r * kBlock + j), offset);
      if (add) value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(here, add + r * ldc + j));
      _mm512_mask_storeu_ps(c + r * ldc + j, here, value);
    }
  }
}

/// Products of a left operand of `rows` rows with columns of tiles that are `next` numbers apart, block by block.
void multiply_all(const std::uint16_t* left, std::size_t rows, std::size_t tiles, const std::uint16_t* right,
                  std::size_t next, std::size_t n, const float* bias, const float* add, float* c,
                  std::size_t ldc, const Ahead* ahead = nullptr) {
  Fetch fetch(ahead, ((rows + kBlock - 1) / kBlock) * ((n + kBlock - 1) / kBlock));
  for (std::size_t j = 0; j < n; j += kBlock) {
    const Operand columns = {right + j / kSide * next, next};
    for (std::size_t r = 0; r < rows; r += kBlock) {
      const std::size_t at = r * ldc + j;
      fetch.some();
      multiply_block({left + r * tiles * kTileDepth, tiles * kTile}, columns, tiles, least(kBlock, rows - r),
                     least(kBlock, n - j), bias ? bias + j : nullptr, add ? add + at : nullptr, c + at, ldc);
    }
  }
}

void pack(const float* w, std::size_t k, std::size_t n, float* packed) {
  round_right(w, n, k, n, reinterpret_cast<std::uint16_t*>(packed));
}

void pack_transposed(const float* w, std::size_t k, std::size_t n, float* packed) {
  auto* out = reinterpret_cast<std::uint16_t*>(packed);
  for (std::size_t i = 0; i < k; i += kSide) {  // columns of the transpose
    for (std::size_t j = 0; j < tiles_of(n) * kTileDepth; j += 2, out += kTileDepth) {
      alignas(64) float pair[2][kSide] = {};
      for (std::size_t c = 0; c < least(kSide, k - i); ++c) {
        if (j < n) pair[0][c] = w[(i + c) * n + j];
        if (j + 1 < n) pair[1][c] = w[(i + c) * n + j + 1];
      }
      _mm512_storeu_si512(out, interleave(_mm512_load_ps(pair[0]), _mm512_load_ps(pair[1])));
    }
  }
}

void gemm(const float* a, std::size_t lda, std::size_t m, std::size_t k, const float* packed, std::size_t n,
          const float* bias, const float* add, float* c, std::size_t ldc, const Ahead*) {
  const Tiles in_use;
  alignas(64) std::uint16_t left[kMostLeft];
  const auto* right = reinterpret_cast<const std::uint16_t*>(packed);
  const std::size_t column_of_tiles = tiles_of(k) * kTile;
  for (std::size_t i = 0; i < k; i += kMostDepth) {
    const std::size_t depth = least(kMostDepth, k - i), tiles = tiles_of(depth);
    const std::size_t step =
        kMostLeft / (tiles * kTileDepth) / kBlock * kBlock;  // rows that are rounded at once
    const float* begin = i == 0 ? add : c;
    for (std::size_t first = 0; first < m; first += step) {
      const std::size_t rows = least(step, m - first);
      round_left(a + first * lda + i, lda, rows, depth, left);
      multiply_all(left, rows, tiles, right + i / kTileDepth * kTile, column_of_tiles, n,
                   i == 0 ? bias : nullptr, begin ? begin + first * ldc : nullptr, c + first * ldc, ldc);
    }
  }
}

void gemm_weights(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                  std::size_t k, std::size_t n, float* dw) {
  const Tiles in_use;
  alignas(64) std::uint16_t left[kPart * kPart];
  alignas(64) std::uint16_t right[kPart * kPart];
  for (std::size_t first = 0; first < m; first += kPart, a += kPart * lda, d += kPart * ldd) {
    const std::size_t depth = least(kPart, m - first), tiles = tiles_of(depth), next = tiles * kTile;
    for (std::size_t j0 = 0; j0 < n; j0 += kPart) {
      const std::size_t columns = least(kPart, n - j0);
      round_right(d + j0, ldd, depth, columns, right);
      for (std::size_t i0 = 0; i0 < k; i0 += kPart) {
        const std::size_t rows = least(kPart, k - i0);
        round_left_transposed(a + i0, lda, depth, rows, left);
        float* to = dw + i0 * n + j0;
        multiply_all(left, rows, tiles, right, next, columns, nullptr, to, to, n);
      }
    }
  }
}

void round_rows(const float* a, std::size_t lda, std::size_t rows, std::size_t first, std::size_t m,
                std::size_t k, float* operand) {
  auto* out = reinterpret_cast<std::uint16_t*>(operand);
  const std::size_t across = tiles_of(k);
  stay_awake();
  for (std::size_t r = first; r < end_of_block(first, rows, m); ++r, a += lda)
    round_row(a, r < m ? k : 0, across, out + (r / kSide * across * kSide + r % kSide) * kTileDepth);
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
    return _mm512_maskz_loadu_ps(lanes(count > kSide ? count - kSide : 0), row + kSide);
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

void backward(const float* operand, std::size_t m, std::size_t k, std::size_t n,
              const float* packed_transposed, float* dw, float* e, std::size_t lde, float* work,
              const Ahead* ahead) {
  const Work at(work, m, n);
  transpose_left(reinterpret_cast<const std::uint16_t*>(operand), m, k, at.transposed);
  multiply_all(at.transposed, k, at.down, at.right, at.down * kTile, n, nullptr, dw, dw, n);
  multiply_all(at.left, m, tiles_of(n), reinterpret_cast<const std::uint16_t*>(packed_transposed),
               tiles_of(n) * kTile, k, nullptr, nullptr, e, lde, ahead);
}

PairKernels make_table() {
  PairKernels table = avx512::pair_kernels_table();
  table.name = "amx";
  table.hidden = {pack, pack_transposed, gemm, gemm_weights};
  static constexpr RoundedLayer rounded = {Tiles::begin, Tiles::end,     round_rows,
                                           forward,      round_gradient, backward};
  table.rounded = &rounded;
  return table;
}

}  // namespace

const PairKernels& pair_kernels_table() {
  static const PairKernels table = make_table();
  return table;
}

}  // namespace nrec::amx
