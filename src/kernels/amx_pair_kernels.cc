// AMX: products of hidden layers with bf16 operands in tiles and float32 sums; everything else is that of AVX-512. Compiled with its
// own flags: nothing here may be inlined into other files, so no std containers.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/amx_rounded_layer.h"
#include "kernels/amx_tiles.h"
#include "kernels/pair_kernels_isa.h"

namespace nrec::amx {
namespace {

constexpr std::size_t kMostDepth = 512;                 // of a left operand that is rounded at once
constexpr std::size_t kMostLeft = kBlock * kMostDepth;  // its numbers: more rows where there is less depth
constexpr std::size_t kPart = 128;  // rows and columns of the operands of a gradient that are rounded at once

/// Sixteen columns of rows i and i + 1 of a matrix of `rows`, side by side; zeros beyond.
inline __m512i pair_of_rows(const float* w, std::size_t ldw, std::size_t i, std::size_t rows,
                            __mmask16 here) {
  const auto row = [&](std::size_t r) {
    return r < rows ? _mm512_maskz_loadu_ps(here, w + r * ldw) : _mm512_setzero_ps();
  };
  const __m512 low = row(i), high = row(i + 1);
  return interleave(low, high);
}

/// W[depth, columns] as a right operand, [tiles of columns][tiles of depth]; zeros around.
void round_right(const float* w, std::size_t ldw, std::size_t depth, std::size_t columns,
                 std::uint16_t* out) {
  const std::size_t whole = tiles_of(depth) * kTileDepth, next = whole * kSide;
  for (std::size_t i = 0; i < whole; i += 2, out += kTileDepth) {
    std::uint16_t* row = out;
    for (std::size_t j = 0; j < columns; j += kSide, row += next)
      _mm512_storeu_si512(row, pair_of_rows(w + j, ldw, i, depth, first_lanes(columns - j)));
  }
}

/// A[rows, depth] as a left operand, [tiles of rows][tiles of depth]; zeros around.
void round_left(const float* a, std::size_t lda, std::size_t rows, std::size_t depth, std::uint16_t* out) {
  const std::size_t across = tiles_of(depth);
  for (std::size_t r = 0; r < (rows + kBlock - 1) / kBlock * kBlock; ++r)
    round_row(r < rows ? a + r * lda : a, r < rows ? depth : 0, across,
              out + (r / kSide * across * kSide + r % kSide) * kTileDepth);
}

/// The transpose of A[depth, columns] as a left operand, [tiles of columns][tiles of depth]: its tiles are those of a right
/// operand with pairs and columns exchanged.
void round_left_transposed(const float* a, std::size_t lda, std::size_t depth, std::size_t columns,
                           std::uint16_t* out) {
  const std::size_t tiles = tiles_of(depth);
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    for (std::size_t j = 0; j < columns; j += kSide) {
      const __mmask16 here = first_lanes(columns - j);
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

void pack(const float* w, std::size_t ldw, std::size_t k, std::size_t n, float* packed) {
  round_right(w, ldw, k, n, reinterpret_cast<std::uint16_t*>(packed));
}

void pack_transposed(const float* w, std::size_t ldw, std::size_t k, std::size_t n, float* packed) {
  auto* out = reinterpret_cast<std::uint16_t*>(packed);
  for (std::size_t i = 0; i < k; i += kSide) {  // columns of the transpose
    for (std::size_t j = 0; j < tiles_of(n) * kTileDepth; j += 2, out += kTileDepth) {
      alignas(64) float pair[2][kSide] = {};
      for (std::size_t c = 0; c < least(kSide, k - i); ++c) {
        if (j < n) pair[0][c] = w[(i + c) * ldw + j];
        if (j + 1 < n) pair[1][c] = w[(i + c) * ldw + j + 1];
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
    const float* before = i == 0 ? add : c;
    for (std::size_t first = 0; first < m; first += step) {
      const std::size_t rows = least(step, m - first);
      round_left(a + first * lda + i, lda, rows, depth, left);
      multiply_all(left, rows, tiles, right + i / kTileDepth * kTile, column_of_tiles, padded_features(n),
                   i == 0 ? bias : nullptr, before ? before + first * ldc : nullptr, c + first * ldc, ldc);
    }
  }
}

void gemm_weights(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                  std::size_t k, std::size_t n, float* dw, std::size_t ldw) {
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
        float* to = dw + i0 * ldw + j0;
        multiply_all(left, rows, tiles, right, next, columns, nullptr, to, to, ldw);
      }
    }
  }
}

PairKernels make_table() {
  PairKernels table = avx512::pair_kernels_table();
  table.name = "amx";
  table.hidden = {pack, pack_transposed, gemm, gemm_weights};
  table.rounded = &rounded_layer;
  return table;
}

}  // namespace

const PairKernels& pair_kernels_table() {
  static const PairKernels table = make_table();
  return table;
}

}  // namespace nrec::amx
