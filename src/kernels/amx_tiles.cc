// Products of tiles with bf16 operands and float32 sums. Compiled with its own flags: nothing here may be inlined
// into other files, so no std containers.
#include "kernels/amx_tiles.h"

#include "kernels/fetch_ahead.h"

namespace nrec::amx {

namespace {

constinit thread_local int users = 0;  // of tiles, on this thread

constexpr int kStride = 64;  // bytes from row to row of a tile

/// The compiler's tile instructions do not tell it that they read and write memory: this does.
inline void memory_is_used() { __asm__ volatile("" ::: "memory"); }

struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {};
  std::uint8_t rows[16] = {};
};

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

/// sums = start + the product over `tiles` tiles of depth; only the first R x V tiles of sums are computed. The right operand goes by once
/// for every block of rows: it is loaded past the first cache, which keeps what belongs to those rows.
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
    _tile_stream_loadd(6, b.start + i, kStride);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (V == 2) {
      _tile_stream_loadd(7, b.start + b.next + i, kStride);
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

/// to = bias + add, [rows, columns] of a block; zeros for what is null.
void start_block(std::size_t rows, std::size_t columns, const float* bias, const float* add,
                 std::size_t ld_add, float* to, std::size_t ld_to) {
  for (std::size_t j = 0; j < columns; j += kSide) {
    const __mmask16 here = first_lanes(columns - j);
    const __m512 offset = bias ? _mm512_maskz_loadu_ps(here, bias + j) : _mm512_setzero_ps();
    for (std::size_t r = 0; r < rows; ++r) {
      const __m512 more = add ? _mm512_maskz_loadu_ps(here, add + r * ld_add + j) : _mm512_setzero_ps();
      _mm512_mask_storeu_ps(to + r * ld_to + j, here, _mm512_add_ps(offset, more));
    }
  }
}

/// C[rows, columns] = bias + add + the product; at most kBlock of either. Sums begin with bias and add whatever the size of the
/// block, so that a row has the same bits in any.
void multiply_block(const Operand& a, const Operand& b, std::size_t tiles, std::size_t rows,
                    std::size_t columns, const float* bias, const float* add, float* c, std::size_t ldc) {
  const std::size_t stride = ldc * sizeof(float);
  if (rows == kBlock && columns == kBlock) {
    if (bias && add) {
      start_block(rows, columns, bias, add, ldc, c, ldc);
      return multiply<2, 2>(a, b, tiles, {c, stride}, c, stride);
    }
    return multiply<2, 2>(a, b, tiles, add ? Start{add, stride} : Start{bias, 0}, c, stride);
  }
  alignas(64) float sums[kBlock * kBlock] = {};
  constexpr std::size_t kSumStride = kBlock * sizeof(float);
  start_block(rows, columns, bias, add, ldc, sums, kBlock);
  const bool tall = rows > kSide, wide = columns > kSide;
  (tall ? (wide ? multiply<2, 2> : multiply<2, 1>) : (wide ? multiply<1, 2> : multiply<1, 1>))(
      a, b, tiles, Start{sums, kSumStride}, sums, kSumStride);
  for (std::size_t j = 0; j < columns; j += kSide) {
    const __mmask16 here = first_lanes(columns - j);
    for (std::size_t r = 0; r < rows; ++r)
      _mm512_mask_storeu_ps(c + r * ldc + j, here, _mm512_load_ps(sums + r * kBlock + j));
  }
}

}  // namespace

void Tiles::begin() {
  if (users++ > 0) return;
  TileConfiguration configuration;
  for (int i = 0; i < 8; ++i) {
    configuration.bytes_per_row[i] = kStride;
    configuration.rows[i] = kSide;
  }
  memory_is_used();
  _tile_loadconfig(&configuration);
}

void Tiles::end() {
  if (--users == 0) _tile_release();
}

void multiply_all(const std::uint16_t* left, std::size_t rows, std::size_t tiles, const std::uint16_t* right,
                  std::size_t next, std::size_t n, const float* bias, const float* add, float* c,
                  std::size_t ldc, const Ahead* ahead) {
  Fetch fetch(ahead, ((rows + kBlock - 1) / kBlock) * ((n + kBlock - 1) / kBlock));
  for (std::size_t r = 0; r < rows; r += kBlock) {
    for (std::size_t j = 0; j < n; j += kBlock) {
      const Operand columns = {right + j / kSide * next, next};
      const std::size_t at = r * ldc + j;
      fetch.some();
      multiply_block({left + r * tiles * kTileDepth, tiles * kTile}, columns, tiles, least(kBlock, rows - r),
                     least(kBlock, n - j), bias ? bias + j : nullptr, add ? add + at : nullptr, c + at, ldc);
    }
  }
  fetch.rest();
}

}  // namespace nrec::amx
