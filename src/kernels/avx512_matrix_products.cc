// Matrix products of the pair network by AVX-512F, float32. Compiled with its own flags: nothing here may be inlined into other
// files, so no std containers.
#include "kernels/avx512_matrix_products.h"

#include <immintrin.h>

#include "kernels/lane_masks.h"
#include "kernels/product_blocks.h"
#include "kernels/row_sums.h"

namespace nrec::avx512 {
namespace {

constexpr std::size_t kLanes = 16;  // one panel of packed weights
constexpr int kRowBlock =
    8;  // 8 x 32 or 8 x 48 accumulators, 2 or 3 columns, 1 broadcast: at most 28 registers of 32
constexpr int kPanels = 2;  // of a product; with three, rows of A and weights together leave the L1 cache
constexpr int kGradientPanels = 3;  // of a gradient of weights: fewer loads for a multiplication

inline std::size_t panel(int v) { return kLanes * static_cast<std::size_t>(v); }

// Sixteen columns of row i of a matrix, in `apart` numbers from one panel to the next.
struct Whole {
  const float* start;
  std::size_t step, apart;  // from row to row, from panel to panel
  __m512 operator()(std::size_t i, std::size_t v) const {
    return _mm512_loadu_ps(start + i * step + v * apart);
  }
};
// Zeros behind the last column.
struct Some {
  Whole whole;
  std::size_t last;  // panel
  __mmask16 lanes;
  __m512 operator()(std::size_t i, std::size_t v) const {
    return v < last ? whole(i, v)
                    : _mm512_maskz_loadu_ps(lanes, whole.start + i * whole.step + v * whole.apart);
  }
};

// sums[R][V] += over `depth` steps: a at a[r * stride + i] or a[i * stride + r], columns(i, v).
template <int R, int V, bool kDepthIsContiguous, class Columns>
inline void multiply(const float* a, std::size_t stride, const Columns& columns, std::size_t depth,
                     __m512 (&sums)[R][V]) {
  for (std::size_t i = 0; i < depth; ++i) {
    __m512 values[V];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < V; ++v) values[v] = columns(i, v);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512 value = _mm512_set1_ps(kDepthIsContiguous ? a[r * stride + i] : a[i * stride + r]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[r][v] = _mm512_fmadd_ps(value, values[v], sums[r][v]);
    }
  }
}

// Of V whole panels.
template <int V>
struct Panels {
  template <int R>
  static void rows(const float* a, std::size_t lda, std::size_t k, const float* packed, const float* bias,
                   const float* add, float* c, std::size_t ldc) {
    __m512 sums[R][V];
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) {
      const __m512 start = bias ? _mm512_loadu_ps(bias + panel(v)) : _mm512_setzero_ps();
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sums[r][v] = add ? _mm512_add_ps(start, _mm512_loadu_ps(add + r * ldc + panel(v))) : start;
    }
    multiply<R, V, true>(a, lda, Whole{packed, kLanes, kLanes * k}, k, sums);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
      for (int v = 0; v < V; ++v) _mm512_storeu_ps(c + r * ldc + panel(v), sums[r][v]);
    }
  }
};

// kDepths numbers of a row, over and over.
template <int kDepths>
inline __m512 repeated(const float* a) {
  if constexpr (kDepths == 2)
    return _mm512_castsi512_ps(_mm512_broadcastq_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(a))));
  if constexpr (kDepths == 4) return _mm512_broadcast_f32x4(_mm_loadu_ps(a));
  if constexpr (kDepths == 8)
    return _mm512_castpd_ps(_mm512_broadcast_f64x4(_mm256_castps_pd(_mm256_loadu_ps(a))));
  return _mm512_loadu_ps(a);
}
// The first `count` of them, and zeros.
template <int kDepths>
inline __m512 repeated(const float* a, std::size_t count) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i order = _mm512_and_epi32(lane, _mm512_set1_epi32(kDepths - 1));
  return _mm512_permutexvar_ps(order, _mm512_maskz_loadu_ps(first_lanes(count), a));
}

// Of the columns behind whole panels.
template <int kDepths>
struct LastColumns {
  template <int R>
  static void rows(const float* a, std::size_t lda, std::size_t k, const float* packed, const float* bias,
                   const float* add, float* c, std::size_t ldc) {
    __m512 sums[R] = {};
    std::size_t i = 0;
    for (; i + kDepths <= k; i += kDepths, packed += kLanes) {
      const __m512 columns = _mm512_loadu_ps(packed);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sums[r] = _mm512_fmadd_ps(repeated<kDepths>(a + r * lda + i), columns, sums[r]);
    }
    if (i < k) {
      const __m512 columns = _mm512_loadu_ps(packed);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sums[r] = _mm512_fmadd_ps(repeated<kDepths>(a + r * lda + i, k - i), columns, sums[r]);
    }
    const __m256 offset = bias ? _mm256_loadu_ps(bias) : _mm256_setzero_ps();
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256 low = _mm512_castps512_ps256(sums[r]);
      const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sums[r]), 1));
      const __m256 start = add ? _mm256_add_ps(offset, _mm256_loadu_ps(add + r * ldc)) : offset;
      _mm256_storeu_ps(c + r * ldc, _mm256_add_ps(start, neighbour_sums<kDepths>(low, high)));
    }
  }
};

template <int R, int V>
void weights_rows(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m, float* dw,
                  std::size_t ldw) {
  __m512 sums[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) sums[r][v] = _mm512_loadu_ps(dw + r * ldw + panel(v));
  }
  multiply<R, V, false>(a, lda, Whole{d, ldd, kLanes}, m, sums);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) _mm512_storeu_ps(dw + r * ldw + panel(v), sums[r][v]);
  }
}

template <int R, int V>
inline void weights_rest(std::size_t rows, const float* a, std::size_t lda, const float* d, std::size_t ldd,
                         std::size_t m, float* dw, std::size_t ldw) {
  if (rows == R) {
    weights_rows<R, V>(a, lda, d, ldd, m, dw, ldw);
  } else if constexpr (R > 1) {
    weights_rest<R - 1, V>(rows, a, lda, d, ldd, m, dw, ldw);
  }
}

// V panels of columns of dW, all of its rows: the panels of D stay in L1 while A and dW go by.
template <int V>
void weights_panels(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                    std::size_t k, float* dw, std::size_t ldw) {
  std::size_t i = 0;
  for (; i + kRowBlock <= k; i += kRowBlock)
    weights_rows<kRowBlock, V>(a + i, lda, d, ldd, m, dw + i * ldw, ldw);
  weights_rest<kRowBlock - 1, V>(k - i, a + i, lda, d, ldd, m, dw + i * ldw, ldw);
}

// At most 16 V rows of dW and R of its columns, as the transpose D^T A.
template <int R, int V>
void last_weights_rows(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                       std::size_t count, float* dw, std::size_t ldw) {
  alignas(64) float transposed[R][kLanes * V] = {};
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t r = 0; r < R; ++r) transposed[r][i] = dw[i * ldw + r];
  }
  __m512 sums[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sums[r][v] = _mm512_load_ps(transposed[r] + panel(v));
  }
  const Whole rows{a, lda, kLanes};
  if (count == kLanes * V) {
    multiply<R, V, false>(d, ldd, rows, m, sums);
  } else {
    multiply<R, V, false>(d, ldd, Some{rows, V - 1, first_lanes(count - kLanes * (V - 1))}, m, sums);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) _mm512_store_ps(transposed[r] + panel(v), sums[r][v]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t r = 0; r < R; ++r) dw[i * ldw + r] = transposed[r][i];
  }
}

template <int R, int V>
inline void last_weights_rest(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                              std::size_t count, float* dw, std::size_t ldw) {
  if (count > kLanes * (V - 1)) {
    last_weights_rows<R, V>(a, lda, d, ldd, m, count, dw, ldw);
  } else if constexpr (V > 1) {
    last_weights_rest<R, V - 1>(a, lda, d, ldd, m, count, dw, ldw);
  }
}

// R columns of dW: one of 8, 7 .. 1 is right.
template <int R>
void last_weights(std::size_t columns, const float* a, std::size_t lda, const float* d, std::size_t ldd,
                  std::size_t m, std::size_t k, float* dw, std::size_t ldw) {
  if (columns == R) {
    constexpr int kPanelsAtOnce = R > 4 ? 2 : 4;
    constexpr std::size_t kRows = kLanes * kPanelsAtOnce;
    for (std::size_t i = 0; i < k; i += kRows)
      last_weights_rest<R, kPanelsAtOnce>(a + i, lda, d, ldd, m, k - i < kRows ? k - i : kRows, dw + i * ldw,
                                          ldw);
  } else if constexpr (R > 1) {
    last_weights<R - 1>(columns, a, lda, d, ldd, m, k, dw, ldw);
  }
}

// run<V>(first column) for groups of kMost panels while many are left, then for three or two, so that none is alone.
template <int kMost, class Run>
inline void for_panels(std::size_t panels, const Run& run) {
  for (std::size_t left = panels; left > 0;) {
    const std::size_t j = (panels - left) * kLanes;
    if (left > 4) {
      run.template operator()<kMost>(j);
      left -= kMost;
    } else if (left == 3) {
      run.template operator()<3>(j);
      left = 0;
    } else if (left > 1) {
      run.template operator()<2>(j);
      left -= 2;
    } else {
      run.template operator()<1>(j);
      left = 0;
    }
  }
}

}  // namespace

void gemm(const float* a, std::size_t lda, std::size_t m, std::size_t k, const float* packed, std::size_t n,
          const float* bias, const float* add, float* c, std::size_t ldc, const Ahead* ahead) {
  const PackedPanels panels(n);
  Fetch fetch(ahead, (m / kRowBlock + 1) * ((n + kPanels * kLanes - 1) / (kPanels * kLanes)));
  const auto run = [&](const auto& of_columns, std::size_t j) {
    of_columns(m, a, lda, k, packed + j * k, bias ? bias + j : nullptr, add ? add + j : nullptr, c + j, ldc,
               fetch);
  };
  for_panels<kPanels>(panels.panels,
                      [&]<int V>(std::size_t j) { run(gemm_columns<Panels<V>, kRowBlock>, j); });
  for_last_columns<LastColumns, kRowBlock>(panels,
                                           [&](const auto& of_columns) { run(of_columns, panels.whole()); });
  fetch.rest();
}

void gemm_weights(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                  std::size_t k, std::size_t n, float* dw, std::size_t ldw) {
  constexpr std::size_t kRowsInL1 = 128;  // of D, beside as many lines of A
  const PackedPanels panels(n);
  const std::size_t whole = panels.whole();
  for (std::size_t first = 0; first < m; first += kRowsInL1, a += kRowsInL1 * lda, d += kRowsInL1 * ldd) {
    const std::size_t rows = first + kRowsInL1 < m ? kRowsInL1 : m - first;
    for_panels<kGradientPanels>(panels.panels, [&]<int V>(std::size_t j) {
      weights_panels<V>(a, lda, d + j, ldd, rows, k, dw + j, ldw);
    });
    if (panels.last > 0)
      last_weights<static_cast<int>(kLanes) / 2>(panels.last, a, lda, d + whole, ldd, rows, k, dw + whole,
                                                 ldw);
  }
}

}  // namespace nrec::avx512
