// Matrix products of the pair network by AVX2 + FMA, float32. Compiled with its own flags: nothing here may be inlined into other
// files, so no std containers.
#include "kernels/avx2_matrix_products.h"

#include <immintrin.h>

#include "kernels/fetch_ahead.h"
#include "nrec/kernels/pair_kernels.h"

namespace nrec::avx2 {
namespace {

constexpr std::size_t kLanes = 8;
constexpr int kRowBlock = 6;               // 6 x 16 accumulators, 2 weights, 1 broadcast: 15 registers
constexpr int kTallRowBlock = 12;          // 12 x 8 for a last panel of 8 columns
constexpr std::size_t kRowsInL1 = 48;      // rows of A that share a weight panel while both are in L1
constexpr std::size_t kMostRowsInL1 = 52;  // rows of D beside six columns of A, for gradients of weights

// Rows of the blocks that m rows are cut into for gradients of weights, as equal as can be: all of dW goes by for a short last one, too.
inline std::size_t equal_blocks(std::size_t m) {
  const std::size_t blocks = (m + kMostRowsInL1 - 1) / kMostRowsInL1;
  return blocks > 1 ? (m + blocks - 1) / blocks : m;
}

// Columns of the panel that starts at column j of n: 16, or 8 at the end.
inline std::size_t panel_columns(std::size_t j, std::size_t n) {
  return n - j < kPanelColumns ? kLanes : kPanelColumns;
}

// acc[R][8 V] over `depth` steps: a at a[r * stride + i] or a[i * stride + r], b at b[i * b_step].
template <int R, int V, bool kDepthIsContiguous>
inline void multiply(const float* a, std::size_t stride, const float* b, std::size_t b_step,
                     std::size_t depth, __m256 (&sums)[R][V]) {
  for (std::size_t i = 0; i < depth; ++i) {
    __m256 columns[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) columns[v] = _mm256_loadu_ps(b + kLanes * static_cast<std::size_t>(v));
    b += b_step;
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const __m256 value = _mm256_broadcast_ss(kDepthIsContiguous ? a + r * stride + i : a + i * stride + r);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sums[r][v] = _mm256_fmadd_ps(value, columns[v], sums[r][v]);
    }
  }
}

template <int R, int V>
void gemm_rows(const float* a, std::size_t lda, std::size_t k, const float* panel, const float* bias,
               const float* add, float* c, std::size_t ldc) {
  __m256 sums[R][V];
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const std::size_t column = kLanes * static_cast<std::size_t>(v);
    const __m256 start = bias ? _mm256_loadu_ps(bias + column) : _mm256_setzero_ps();
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r)
      sums[r][v] = add ? _mm256_add_ps(start, _mm256_loadu_ps(add + r * ldc + column)) : start;
  }
  multiply<R, V, true>(a, lda, panel, kLanes * V, k, sums);
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v)
      _mm256_storeu_ps(c + r * ldc + kLanes * static_cast<std::size_t>(v), sums[r][v]);
  }
}

// What is left of a block of rows: R, R - 1 .. 1 of them, or none.
template <int R, int V>
inline void gemm_rest(std::size_t rows, const float* a, std::size_t lda, std::size_t k, const float* panel,
                      const float* bias, const float* add, float* c, std::size_t ldc) {
  if (rows == R) {
    gemm_rows<R, V>(a, lda, k, panel, bias, add, c, ldc);
  } else if constexpr (R > 1) {
    gemm_rest<R - 1, V>(rows, a, lda, k, panel, bias, add, c, ldc);
  }
}

template <int V>
void gemm_panel(std::size_t rows, const float* a, std::size_t lda, std::size_t k, const float* panel,
                const float* bias, const float* add, float* c, std::size_t ldc, Fetch& fetch) {
  std::size_t r = 0;
  if (V == 1) {
    for (; r + kTallRowBlock <= rows; r += kTallRowBlock) {
      fetch.some();
      gemm_rows<kTallRowBlock, 1>(a + r * lda, lda, k, panel, bias, add ? add + r * ldc : nullptr,
                                  c + r * ldc, ldc);
    }
  }
  for (; r + kRowBlock <= rows; r += kRowBlock) {
    fetch.some();
    gemm_rows<kRowBlock, V>(a + r * lda, lda, k, panel, bias, add ? add + r * ldc : nullptr, c + r * ldc,
                            ldc);
  }
  gemm_rest<kRowBlock - 1, V>(rows - r, a + r * lda, lda, k, panel, bias, add ? add + r * ldc : nullptr,
                              c + r * ldc, ldc);
}

template <int R, int V>
void weights_rows(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m, float* dw,
                  std::size_t n) {
  __m256 sums[R][V];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v)
      sums[r][v] = _mm256_loadu_ps(dw + r * n + kLanes * static_cast<std::size_t>(v));
  }
  multiply<R, V, false>(a, lda, d, ldd, m, sums);
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v)
      _mm256_storeu_ps(dw + r * n + kLanes * static_cast<std::size_t>(v), sums[r][v]);
  }
}

// Rows of dW that are left: R, R - 1 .. 1 of them, or none.
template <int R, int V>
inline void weights_rest(std::size_t rows, const float* a, std::size_t lda, const float* d, std::size_t ldd,
                         std::size_t m, float* dw, std::size_t n) {
  if (rows == R) {
    weights_rows<R, V>(a, lda, d, ldd, m, dw, n);
  } else if constexpr (R > 1) {
    weights_rest<R - 1, V>(rows, a, lda, d, ldd, m, dw, n);
  }
}

}  // namespace

void pack(const float* w, std::size_t k, std::size_t n, float* packed) {
  for (std::size_t j = 0; j < n; j += kPanelColumns) {
    const std::size_t columns = panel_columns(j, n);
    for (std::size_t i = 0; i < k; ++i, packed += columns) {
      for (std::size_t c = 0; c < columns; c += kLanes)
        _mm256_storeu_ps(packed + c, _mm256_loadu_ps(w + i * n + j + c));
    }
  }
}

void pack_transposed(const float* w, std::size_t ldw, std::size_t k, std::size_t n, float* packed) {
  for (std::size_t i = 0; i < k; i += kPanelColumns) {
    const std::size_t columns = panel_columns(i, k);
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t c = 0; c < columns; ++c) *packed++ = w[(i + c) * ldw + j];
    }
  }
}

void gemm(const float* a, std::size_t lda, std::size_t m, std::size_t k, const float* packed, std::size_t n,
          const float* bias, const float* add, float* c, std::size_t ldc, const Ahead* ahead) {
  Fetch fetch(ahead, (m / kRowBlock + 1) * ((n + kPanelColumns - 1) / kPanelColumns));
  for (std::size_t first = 0; first < m; first += kRowsInL1) {
    const std::size_t rows = first + kRowsInL1 < m ? kRowsInL1 : m - first;
    for (std::size_t j = 0; j < n; j += kPanelColumns) {
      const auto run = panel_columns(j, n) == kLanes ? gemm_panel<1> : gemm_panel<2>;
      run(rows, a + first * lda, lda, k, packed + j * k, bias ? bias + j : nullptr,
          add ? add + first * ldc + j : nullptr, c + first * ldc + j, ldc, fetch);
    }
  }
  fetch.rest();
}

void gemm_weights(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                  std::size_t k, std::size_t n, float* dw) {
  const std::size_t step = equal_blocks(m), whole = n / kPanelColumns * kPanelColumns;
  for (std::size_t first = 0; first < m; first += step, a += step * lda, d += step * ldd) {
    const std::size_t rows = first + step < m ? step : m - first;
    // Rows of dW outside: six columns of A and the rows of D stay in L1 while dW streams by.
    std::size_t i = 0;
    for (; i + kRowBlock <= k; i += kRowBlock) {
      for (std::size_t j = 0; j < whole; j += kPanelColumns)
        weights_rows<kRowBlock, 2>(a + i, lda, d + j, ldd, rows, dw + i * n + j, n);
    }
    for (std::size_t j = 0; j < whole; j += kPanelColumns)
      weights_rest<kRowBlock - 1, 2>(k - i, a + i, lda, d + j, ldd, rows, dw + i * n + j, n);
    if (whole == n) continue;
    i = 0;
    for (; i + kTallRowBlock <= k; i += kTallRowBlock)
      weights_rows<kTallRowBlock, 1>(a + i, lda, d + whole, ldd, rows, dw + i * n + whole, n);
    for (; i + kRowBlock <= k; i += kRowBlock)
      weights_rows<kRowBlock, 1>(a + i, lda, d + whole, ldd, rows, dw + i * n + whole, n);
    weights_rest<kRowBlock - 1, 1>(k - i, a + i, lda, d + whole, ldd, rows, dw + i * n + whole, n);
  }
}

}  // namespace nrec::avx2
