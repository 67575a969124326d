// Matrix products of the pair network by AVX-512F, float32. Compiled with its own flags: nothing here may be inlined into other
// files, so no std containers.
#include "kernels/avx512_matrix_products.h"

#include <immintrin.h>

#include "kernels/fetch_ahead.h"

namespace nrec::avx512 {
namespace {

constexpr std::size_t kLanes = 16;  // one panel of packed weights
constexpr int kRowBlock =
    8;  // 8 x 32 or 8 x 48 accumulators, 2 or 3 columns, 1 broadcast: at most 28 registers of 32
constexpr int kPanels = 2;  // of a product; with three, rows of A and weights together leave the L1 cache
constexpr int kGradientPanels = 3;  // of a gradient of weights: fewer loads for a multiplication

// V times sixteen columns of a matrix; with kHalfLast only eight in the last.
template <int V, bool kHalfLast>
struct Columns {
  const float* start[V];
  std::size_t step[V];  // from row to row

  // Without masks, which are slower.
  static constexpr bool is_half(int v) { return kHalfLast && v == V - 1; }
  static __m512 load(const float* from, int v) {
    return is_half(v) ? _mm512_zextps256_ps512(_mm256_loadu_ps(from)) : _mm512_loadu_ps(from);
  }
  static void store(float* to, int v, __m512 value) {
    if (is_half(v)) {
      _mm256_storeu_ps(to, _mm512_castps512_ps256(value));
    } else {
      _mm512_storeu_ps(to, value);
    }
  }
};

inline std::size_t panel(int v) { return kLanes * static_cast<std::size_t>(v); }

// sums[R][V] += over `depth` steps: a at a[r * stride + i] or a[i * stride + r].
template <int R, int V, bool kHalfLast, bool kDepthIsContiguous>
inline void multiply(const float* a, std::size_t stride, const Columns<V, kHalfLast>& b, std::size_t depth,
                     __m512 (&sums)[R][V]) {
  for (std::size_t i = 0; i < depth; ++i) {
    __m512 columns[V];
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) columns[v] = b.load(b.start[v] + i * b.step[v], v);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512 value = _mm512_set1_ps(kDepthIsContiguous ? a[r * stride + i] : a[i * stride + r]);
#pragma GCC unroll 3
      for (int v = 0; v < V; ++v) sums[r][v] = _mm512_fmadd_ps(value, columns[v], sums[r][v]);
    }
  }
}

template <int R, int V, bool kHalfLast>
void gemm_rows(const float* a, std::size_t lda, std::size_t k, const Columns<V, kHalfLast>& b,
               const float* bias, const float* add, float* c, std::size_t ldc) {
  __m512 sums[R][V];
#pragma GCC unroll 3
  for (int v = 0; v < V; ++v) {
    const __m512 start = bias ? b.load(bias + panel(v), v) : _mm512_setzero_ps();
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
      sums[r][v] = add ? _mm512_add_ps(start, b.load(add + r * ldc + panel(v), v)) : start;
  }
  multiply<R, V, kHalfLast, true>(a, lda, b, k, sums);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) b.store(c + r * ldc + panel(v), v, sums[r][v]);
  }
}

// Rows R, R - 1 .. 1 that are left: one of them is right.
template <int R, int V, bool kHalfLast>
inline void gemm_rest(std::size_t rows, const float* a, std::size_t lda, std::size_t k,
                      const Columns<V, kHalfLast>& b, const float* bias, const float* add, float* c,
                      std::size_t ldc) {
  if (rows == R) {
    gemm_rows<R, V>(a, lda, k, b, bias, add, c, ldc);
  } else if constexpr (R > 1) {
    gemm_rest<R - 1, V>(rows, a, lda, k, b, bias, add, c, ldc);
  }
}

template <int V, bool kHalfLast>
void gemm_panels(std::size_t rows, const float* a, std::size_t lda, std::size_t k, const float* packed,
                 const float* bias, const float* add, float* c, std::size_t ldc, Fetch& fetch) {
  Columns<V, kHalfLast> b;
  for (int v = 0; v < V; ++v) {
    b.start[v] = packed + panel(v) * k;
    b.step[v] = b.is_half(v) ? kLanes / 2 : kLanes;
  }
  std::size_t r = 0;
  for (; r + kRowBlock <= rows; r += kRowBlock) {
    fetch.some();
    gemm_rows<kRowBlock, V>(a + r * lda, lda, k, b, bias, add ? add + r * ldc : nullptr, c + r * ldc, ldc);
  }
  gemm_rest<kRowBlock - 1, V>(rows - r, a + r * lda, lda, k, b, bias, add ? add + r * ldc : nullptr,
                              c + r * ldc, ldc);
}

// run<V, kHalfLast>(first column) for groups of at most kMost panels of n columns.
template <int kMost, class Run>
inline void for_panels(std::size_t n, const Run& run) {
  std::size_t j = 0;
  for (; j + kMost * kLanes <= n; j += kMost * kLanes) run.template operator()<kMost, false>(j);
  const auto rest = [&]<int V>(const auto& self) {
    const std::size_t left = n - j;
    if (left == V * kLanes) return run.template operator()<V, false>(j);
    if (left == V * kLanes - kLanes / 2) return run.template operator()<V, true>(j);
    if constexpr (V > 1) self.template operator()<V - 1>(self);
  };
  rest.template operator()<kMost>(rest);
}

template <int R, int V, bool kHalfLast>
void weights_rows(const float* a, std::size_t lda, const Columns<V, kHalfLast>& d, std::size_t m, float* dw,
                  std::size_t n) {
  __m512 sums[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) sums[r][v] = d.load(dw + r * n + panel(v), v);
  }
  multiply<R, V, kHalfLast, false>(a, lda, d, m, sums);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) d.store(dw + r * n + panel(v), v, sums[r][v]);
  }
}

template <int R, int V, bool kHalfLast>
inline void weights_rest(std::size_t rows, const float* a, std::size_t lda, const Columns<V, kHalfLast>& d,
                         std::size_t m, float* dw, std::size_t n) {
  if (rows == R) {
    weights_rows<R, V>(a, lda, d, m, dw, n);
  } else if constexpr (R > 1) {
    weights_rest<R - 1, V>(rows, a, lda, d, m, dw, n);
  }
}

// V panels of columns of dW, all of its rows: the panels of D stay in L1 while A and dW go by.
template <int V, bool kHalfLast>
void weights_panels(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                    std::size_t k, float* dw, std::size_t n) {
  Columns<V, kHalfLast> columns;
  for (int v = 0; v < V; ++v) {
    columns.start[v] = d + panel(v);
    columns.step[v] = ldd;
  }
  std::size_t i = 0;
  for (; i + kRowBlock <= k; i += kRowBlock)
    weights_rows<kRowBlock, V>(a + i, lda, columns, m, dw + i * n, n);
  weights_rest<kRowBlock - 1, V>(k - i, a + i, lda, columns, m, dw + i * n, n);
}

}  // namespace

void gemm(const float* a, std::size_t lda, std::size_t m, std::size_t k, const float* packed, std::size_t n,
          const float* bias, const float* add, float* c, std::size_t ldc, const Ahead* ahead) {
  Fetch fetch(ahead, (m / kRowBlock + 1) * ((n + kPanels * kLanes - 1) / (kPanels * kLanes)));
  for_panels<kPanels>(n, [&]<int V, bool kHalfLast>(std::size_t j) {
    gemm_panels<V, kHalfLast>(m, a, lda, k, packed + j * k, bias ? bias + j : nullptr,
                              add ? add + j : nullptr, c + j, ldc, fetch);
  });
  fetch.rest();
}

void gemm_weights(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                  std::size_t k, std::size_t n, float* dw) {
  constexpr std::size_t kRowsInL1 = 128;  // of D, beside as many lines of A
  for (std::size_t first = 0; first < m; first += kRowsInL1) {
    const std::size_t rows = first + kRowsInL1 < m ? kRowsInL1 : m - first;
    for_panels<kGradientPanels>(n, [&]<int V, bool kHalfLast>(std::size_t j) {
      weights_panels<V, kHalfLast>(a + first * lda, lda, d + first * ldd + j, ldd, rows, k, dw + j, n);
    });
  }
}

}  // namespace nrec::avx512
