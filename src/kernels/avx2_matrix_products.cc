// Matrix products of the pair network by AVX2 + FMA, float32. Compiled with its own flags: nothing here may be inlined into other
// files, so no std containers.
#include "kernels/avx2_matrix_products.h"

#include <immintrin.h>

#include "kernels/lane_masks.h"
#include "kernels/product_blocks.h"
#include "kernels/row_sums.h"
#include "nrec/kernels/pair_kernels.h"

namespace nrec::avx2 {
namespace {

constexpr std::size_t kLanes = 8;
constexpr int kRowBlock = 6;               // 6 x 16 accumulators, 2 weights, 1 broadcast: 15 registers
constexpr std::size_t kRowsInL1 = 48;      // rows of A that share a weight panel while both are in L1
constexpr std::size_t kMostRowsInL1 = 52;  // rows of D beside six columns of A, for gradients of weights

// Rows of the blocks that m rows are cut into for gradients of weights, as equal as can be: all of dW goes by for a short last one, too.
inline std::size_t equal_blocks(std::size_t m) {
  const std::size_t blocks = (m + kMostRowsInL1 - 1) / kMostRowsInL1;
  return blocks > 1 ? (m + blocks - 1) / blocks : m;
}

// Eight columns of row i of a matrix from column 8 v on.
struct Whole {
  const float* start;
  std::size_t step;  // from row to row
  __m256 operator()(std::size_t i, std::size_t v) const {
    return _mm256_loadu_ps(start + i * step + kLanes * v);
  }
};
// Zeros where no columns are.
struct Some {
  Whole whole;
  __m256i lanes;
  __m256 operator()(std::size_t i, std::size_t) const {
    return _mm256_maskload_ps(whole.start + i * whole.step, lanes);
  }
};

// sums[R][V] over `depth` steps: a at a[r * stride + i] or a[i * stride + r], columns(i, v).
template <int R, int V, bool kDepthIsContiguous, class Columns>
inline void multiply(const float* a, std::size_t stride, const Columns& columns, std::size_t depth,
                     __m256 (&sums)[R][V]) {
  for (std::size_t i = 0; i < depth; ++i) {
    __m256 values[V];
#pragma GCC unroll 3
    for (std::size_t v = 0; v < V; ++v) values[v] = columns(i, v);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256 value = _mm256_broadcast_ss(kDepthIsContiguous ? a + r * stride + i : a + i * stride + r);
#pragma GCC unroll 3
      for (int v = 0; v < V; ++v) sums[r][v] = _mm256_fmadd_ps(value, values[v], sums[r][v]);
    }
  }
}

// bias + add, eight columns of a row.
inline __m256 start_of(const float* bias, const float* add) {
  const __m256 start = bias ? _mm256_loadu_ps(bias) : _mm256_setzero_ps();
  return add ? _mm256_add_ps(start, _mm256_loadu_ps(add)) : start;
}

// Of whole panels.
struct Panel {
  template <int R>
  static void rows(const float* a, std::size_t lda, std::size_t k, const float* panel, const float* bias,
                   const float* add, float* c, std::size_t ldc) {
    __m256 sums[R][2];
#pragma GCC unroll 2
    for (std::size_t v = 0; v < 2; ++v) {
      const std::size_t column = kLanes * v;
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r)
        sums[r][v] = start_of(bias ? bias + column : nullptr, add ? add + r * ldc + column : nullptr);
    }
    multiply<R, 2, true>(a, lda, Whole{panel, kPanelColumns}, k, sums);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (std::size_t v = 0; v < 2; ++v) _mm256_storeu_ps(c + r * ldc + kLanes * v, sums[r][v]);
    }
  }
};

// kDepths numbers of a row, over and over, for each half of a register pair; only the first `count` are there.
template <int kDepths>
struct Repeated {
  __m256 low, high;

  explicit Repeated(const float* a) {
    if constexpr (kDepths == 2) {
      low = high =
          _mm256_castsi256_ps(_mm256_broadcastq_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(a))));
    } else if constexpr (kDepths == 4) {
      low = high = _mm256_broadcast_ps(reinterpret_cast<const __m128*>(a));
    } else {
      low = _mm256_loadu_ps(a);
      high = kDepths == 8 ? low : _mm256_loadu_ps(a + kLanes);
    }
  }
  Repeated(const float* a, std::size_t count) {
    low = high = _mm256_maskload_ps(a, first_lanes(count));
    if constexpr (kDepths == 16) {
      high = _mm256_maskload_ps(a + kLanes, first_lanes(count > kLanes ? count - kLanes : 0));
    } else if constexpr (kDepths < 8) {
      constexpr int kLast = kDepths - 1;
      const __m256i order = _mm256_setr_epi32(0, 1, 2 & kLast, 3 & kLast, 0, 1, 2 & kLast, 3 & kLast);
      low = high = _mm256_permutevar8x32_ps(low, order);
    }
  }
};

// Of the columns behind whole panels.
template <int kDepths>
struct LastColumns {
  template <int R>
  static void rows(const float* a, std::size_t lda, std::size_t k, const float* packed, const float* bias,
                   const float* add, float* c, std::size_t ldc) {
    __m256 sums[R][2] = {};
    const auto step = [&](const auto& numbers) {
      const __m256 low = _mm256_loadu_ps(packed), high = _mm256_loadu_ps(packed + kLanes);
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) {
        const Repeated<kDepths> value = numbers(a + r * lda);
        sums[r][0] = _mm256_fmadd_ps(value.low, low, sums[r][0]);
        sums[r][1] = _mm256_fmadd_ps(value.high, high, sums[r][1]);
      }
      packed += kPanelColumns;
    };
    std::size_t i = 0;
    for (; i + kDepths <= k; i += kDepths) step([&](const float* row) { return Repeated<kDepths>(row + i); });
    if (i < k) step([&](const float* row) { return Repeated<kDepths>(row + i, k - i); });
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const __m256 start = start_of(bias, add ? add + r * ldc : nullptr);
      _mm256_storeu_ps(c + r * ldc, _mm256_add_ps(start, neighbour_sums<kDepths>(sums[r][0], sums[r][1])));
    }
  }
};

template <int R>
void weights_rows(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m, float* dw,
                  std::size_t ldw) {
  __m256 sums[R][2];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (std::size_t v = 0; v < 2; ++v) sums[r][v] = _mm256_loadu_ps(dw + r * ldw + kLanes * v);
  }
  multiply<R, 2, false>(a, lda, Whole{d, ldd}, m, sums);
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (std::size_t v = 0; v < 2; ++v) _mm256_storeu_ps(dw + r * ldw + kLanes * v, sums[r][v]);
  }
}

// Rows of dW that are left: R, R - 1 .. 1 of them, or none.
template <int R>
inline void weights_rest(std::size_t rows, const float* a, std::size_t lda, const float* d, std::size_t ldd,
                         std::size_t m, float* dw, std::size_t ldw) {
  if (rows == R) {
    weights_rows<R>(a, lda, d, ldd, m, dw, ldw);
  } else if constexpr (R > 1) {
    weights_rest<R - 1>(rows, a, lda, d, ldd, m, dw, ldw);
  }
}

// 8 V rows of dW and R of its columns, as the transpose D^T A; of one register of rows only the first `count`.
template <int R, int V>
void last_weights_rows(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                       std::size_t count, float* dw, std::size_t ldw) {
  alignas(32) float transposed[R][kLanes * V] = {};
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t r = 0; r < R; ++r) transposed[r][i] = dw[i * ldw + r];
  }
  __m256 sums[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
    for (std::size_t v = 0; v < V; ++v) sums[r][v] = _mm256_load_ps(transposed[r] + kLanes * v);
  }
  if constexpr (V == 1) {
    multiply<R, V, false>(d, ldd, Some{{a, lda}, first_lanes(count)}, m, sums);
  } else {
    multiply<R, V, false>(d, ldd, Whole{a, lda}, m, sums);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
    for (std::size_t v = 0; v < V; ++v) _mm256_store_ps(transposed[r] + kLanes * v, sums[r][v]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t r = 0; r < R; ++r) dw[i * ldw + r] = transposed[r][i];
  }
}

// R columns of dW: one of 8, 7 .. 1 is right.
template <int R>
void last_weights(std::size_t columns, const float* a, std::size_t lda, const float* d, std::size_t ldd,
                  std::size_t m, std::size_t k, float* dw, std::size_t ldw) {
  if (columns == R) {
    constexpr int kRegisters = R > 4 ? 1 : 3;
    constexpr std::size_t kRows = kLanes * kRegisters;
    std::size_t i = 0;
    for (; i + kRows <= k; i += kRows)
      last_weights_rows<R, kRegisters>(a + i, lda, d, ldd, m, kRows, dw + i * ldw, ldw);
    for (; i < k; i += kLanes)
      last_weights_rows<R, 1>(a + i, lda, d, ldd, m, k - i < kLanes ? k - i : kLanes, dw + i * ldw, ldw);
  } else if constexpr (R > 1) {
    last_weights<R - 1>(columns, a, lda, d, ldd, m, k, dw, ldw);
  }
}

// The columns of W(i, j) = w[i * row + j * column] behind whole panels.
void pack_last(const PackedPanels& panels, const float* w, std::size_t row, std::size_t column, std::size_t k,
               float* packed) {
  for (std::size_t first = 0; panels.last > 0 && first < k; first += panels.depths, packed += kPanelColumns) {
    for (std::size_t c = 0; c < kPanelColumns; ++c) {
      const std::size_t i = first + c % panels.depths, j = c / panels.depths;
      packed[c] = i < k && j < panels.last ? w[i * row + j * column] : 0.0f;
    }
  }
}

}  // namespace

void pack(const float* w, std::size_t ldw, std::size_t k, std::size_t n, float* packed) {
  const PackedPanels panels(n);
  for (std::size_t j = 0; j < panels.whole(); j += kPanelColumns) {
    for (std::size_t i = 0; i < k; ++i, packed += kPanelColumns) {
      _mm256_storeu_ps(packed, _mm256_loadu_ps(w + i * ldw + j));
      _mm256_storeu_ps(packed + kLanes, _mm256_loadu_ps(w + i * ldw + j + kLanes));
    }
  }
  pack_last(panels, w + panels.whole(), ldw, 1, k, packed);
}

void pack_transposed(const float* w, std::size_t ldw, std::size_t k, std::size_t n, float* packed) {
  const PackedPanels panels(k);
  for (std::size_t i = 0; i < panels.whole(); i += kPanelColumns) {
    const std::size_t columns = k - i < kPanelColumns ? k - i : kPanelColumns;
    for (std::size_t j = 0; j < n; ++j, packed += kPanelColumns) {
      for (std::size_t c = 0; c < columns; ++c) packed[c] = w[(i + c) * ldw + j];
      for (std::size_t c = columns; c < kPanelColumns; ++c) packed[c] = 0.0f;
    }
  }
  pack_last(panels, w + panels.whole() * ldw, 1, ldw, n, packed);
}

void gemm(const float* a, std::size_t lda, std::size_t m, std::size_t k, const float* packed, std::size_t n,
          const float* bias, const float* add, float* c, std::size_t ldc, const Ahead* ahead) {
  const PackedPanels panels(n);
  Fetch fetch(ahead, (m / kRowBlock + 1) * ((n + kPanelColumns - 1) / kPanelColumns));
  for (std::size_t first = 0; first < m; first += kRowsInL1) {
    const std::size_t rows = first + kRowsInL1 < m ? kRowsInL1 : m - first;
    const auto run = [&](const auto& of_columns, std::size_t j) {
      of_columns(rows, a + first * lda, lda, k, packed + j * k, bias ? bias + j : nullptr,
                 add ? add + first * ldc + j : nullptr, c + first * ldc + j, ldc, fetch);
    };
    for (std::size_t j = 0; j < panels.whole(); j += kPanelColumns) run(gemm_columns<Panel, kRowBlock>, j);
    for_last_columns<LastColumns, kRowBlock>(
        panels, [&](const auto& of_columns) { run(of_columns, panels.whole()); });
  }
  fetch.rest();
}

void gemm_weights(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                  std::size_t k, std::size_t n, float* dw, std::size_t ldw) {
  const PackedPanels panels(n);
  const std::size_t step = equal_blocks(m), whole = panels.whole();
  for (std::size_t first = 0; first < m; first += step, a += step * lda, d += step * ldd) {
    const std::size_t rows = first + step < m ? step : m - first;
    // Rows of dW outside: six columns of A and the rows of D stay in L1 while dW streams by.
    std::size_t i = 0;
    for (; i + kRowBlock <= k; i += kRowBlock) {
      for (std::size_t j = 0; j < whole; j += kPanelColumns)
        weights_rows<kRowBlock>(a + i, lda, d + j, ldd, rows, dw + i * ldw + j, ldw);
    }
    for (std::size_t j = 0; j < whole; j += kPanelColumns)
      weights_rest<kRowBlock - 1>(k - i, a + i, lda, d + j, ldd, rows, dw + i * ldw + j, ldw);
    if (panels.last > 0) last_weights<kLanes>(panels.last, a, lda, d + whole, ldd, rows, k, dw + whole, ldw);
  }
}

}  // namespace nrec::avx2
