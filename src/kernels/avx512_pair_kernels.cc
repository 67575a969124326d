// AVX-512F, float32: the matrix products; everything else is that of AVX2, where memory sets the pace. Compiled with its own flags:
// nothing here may be inlined into other files, so no std containers.
#include <immintrin.h>

#include <cstddef>

#include "kernels/pair_kernels_isa.h"

namespace nrec::avx512 {
namespace {

constexpr std::size_t kLanes = 16;  // one panel of packed weights
constexpr int kRowBlock = 8;        // 8 x 32 accumulators, 2 weights, 1 broadcast: 19 registers of 32
constexpr std::size_t kRowsInL1 =
    48;  // rows that share two weight panels, or six columns of A, while both are in L1

// Sixteen columns of a matrix, or the last eight.
struct Columns {
  const float* start;
  std::size_t step;  // from row to row
  __mmask16 lanes;
};

inline __mmask16 lanes_of(std::size_t columns) {
  return columns >= kLanes ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>(0x00ff);
}

// sums[R][V] += over `depth` steps: a at a[r * stride + i] or a[i * stride + r].
template <int R, int V, bool kDepthIsContiguous>
inline void multiply(const float* a, std::size_t stride, const Columns (&b)[V], std::size_t depth,
                     __m512 (&sums)[R][V]) {
  for (std::size_t i = 0; i < depth; ++i) {
    __m512 columns[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) columns[v] = _mm512_maskz_loadu_ps(b[v].lanes, b[v].start + i * b[v].step);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512 value = _mm512_set1_ps(kDepthIsContiguous ? a[r * stride + i] : a[i * stride + r]);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sums[r][v] = _mm512_fmadd_ps(value, columns[v], sums[r][v]);
    }
  }
}

template <int R, int V>
void gemm_rows(const float* a, std::size_t lda, std::size_t k, const Columns (&panels)[V], const float* bias,
               bool accumulate, float* c, std::size_t ldc) {
  __m512 sums[R][V];
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const std::size_t column = kLanes * static_cast<std::size_t>(v);
    const __mmask16 lanes = panels[v].lanes;
    const __m512 start = bias ? _mm512_maskz_loadu_ps(lanes, bias + column) : _mm512_setzero_ps();
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
      sums[r][v] =
          accumulate ? _mm512_add_ps(start, _mm512_maskz_loadu_ps(lanes, c + r * ldc + column)) : start;
  }
  multiply<R, V, true>(a, lda, panels, k, sums);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v)
      _mm512_mask_storeu_ps(c + r * ldc + kLanes * static_cast<std::size_t>(v), panels[v].lanes, sums[r][v]);
  }
}

// Rows R, R - 1 .. 1 that are left: one of them is right.
template <int R, int V>
inline void gemm_rest(std::size_t rows, const float* a, std::size_t lda, std::size_t k,
                      const Columns (&panels)[V], const float* bias, bool accumulate, float* c,
                      std::size_t ldc) {
  if (rows == R) {
    gemm_rows<R, V>(a, lda, k, panels, bias, accumulate, c, ldc);
  } else if constexpr (R > 1) {
    gemm_rest<R - 1, V>(rows, a, lda, k, panels, bias, accumulate, c, ldc);
  }
}

template <int V>
void gemm_panels(std::size_t rows, const float* a, std::size_t lda, std::size_t k, const float* packed,
                 std::size_t columns, const float* bias, bool accumulate, float* c, std::size_t ldc) {
  Columns panels[V];
  for (int v = 0; v < V; ++v) {
    const std::size_t first = kLanes * static_cast<std::size_t>(v);
    const std::size_t width = columns - first < kLanes ? columns - first : kLanes;
    panels[v] = {packed + first * k, width, lanes_of(width)};
  }
  std::size_t r = 0;
  for (; r + kRowBlock <= rows; r += kRowBlock)
    gemm_rows<kRowBlock, V>(a + r * lda, lda, k, panels, bias, accumulate, c + r * ldc, ldc);
  gemm_rest<kRowBlock - 1, V>(rows - r, a + r * lda, lda, k, panels, bias, accumulate, c + r * ldc, ldc);
}

void gemm(const float* a, std::size_t lda, std::size_t m, std::size_t k, const float* packed, std::size_t n,
          const float* bias, bool accumulate, float* c, std::size_t ldc) {
  for (std::size_t first = 0; first < m; first += kRowsInL1) {
    const std::size_t rows = first + kRowsInL1 < m ? kRowsInL1 : m - first;
    for (std::size_t j = 0; j < n; j += 2 * kLanes) {
      const auto run = n - j > kLanes ? gemm_panels<2> : gemm_panels<1>;
      run(rows, a + first * lda, lda, k, packed + j * k, n - j, bias ? bias + j : nullptr, accumulate,
          c + first * ldc + j, ldc);
    }
  }
}

template <int R, int V>
void weights_rows(const float* a, std::size_t lda, const Columns (&d)[V], std::size_t m, float* dw,
                  std::size_t n) {
  __m512 sums[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v)
      sums[r][v] = _mm512_maskz_loadu_ps(d[v].lanes, dw + r * n + kLanes * static_cast<std::size_t>(v));
  }
  multiply<R, V, false>(a, lda, d, m, sums);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v)
      _mm512_mask_storeu_ps(dw + r * n + kLanes * static_cast<std::size_t>(v), d[v].lanes, sums[r][v]);
  }
}

template <int R, int V>
inline void weights_rest(std::size_t rows, const float* a, std::size_t lda, const Columns (&d)[V],
                         std::size_t m, float* dw, std::size_t n) {
  if (rows == R) {
    weights_rows<R, V>(a, lda, d, m, dw, n);
  } else if constexpr (R > 1) {
    weights_rest<R - 1, V>(rows, a, lda, d, m, dw, n);
  }
}

// `rows` <= kRowBlock rows of dW, over all of its columns.
void weights_row_block(std::size_t rows, const float* a, std::size_t lda, const float* d, std::size_t ldd,
                       std::size_t m, float* dw, std::size_t n) {
  std::size_t j = 0;
  for (; j + kLanes < n; j += 2 * kLanes) {
    const Columns both[2] = {{d + j, ldd, lanes_of(kLanes)}, {d + j + kLanes, ldd, lanes_of(n - j - kLanes)}};
    weights_rest<kRowBlock, 2>(rows, a, lda, both, m, dw + j, n);
  }
  if (j >= n) return;
  const Columns last[1] = {{d + j, ldd, lanes_of(n - j)}};
  weights_rest<kRowBlock, 1>(rows, a, lda, last, m, dw + j, n);
}

void gemm_weights(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                  std::size_t k, std::size_t n, float* dw) {
  for (std::size_t first = 0; first < m; first += kRowsInL1) {
    const std::size_t rows = first + kRowsInL1 < m ? kRowsInL1 : m - first;
    for (std::size_t i = 0; i < k; i += kRowBlock) {
      const std::size_t count = i + kRowBlock < k ? kRowBlock : k - i;
      weights_row_block(count, a + first * lda + i, lda, d + first * ldd, ldd, rows, dw + i * n, n);
    }
  }
}

PairKernels make_table() {
  PairKernels table = avx2::pair_kernels_table();
  table.name = "avx512";
  table.inputs.gemm = gemm;
  table.inputs.gemm_weights = gemm_weights;
  table.hidden = table.inputs;
  return table;
}

}  // namespace

const PairKernels& pair_kernels_table() {
  static const PairKernels table = make_table();
  return table;
}

}  // namespace nrec::avx512
