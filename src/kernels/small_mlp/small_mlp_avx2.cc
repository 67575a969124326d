// Compiled with -mavx2 -mfma; run only where the processor has both. No std containers, no inline functions
// shared with other files.

#include "kernels/small_mlp/small_mlp_avx2.h"

#include <immintrin.h>

#include "kernels/small_mlp/small_mlp_kernels.h"

namespace nrec::small_mlp::avx2 {
namespace {

// One product C = A B with a fused start and end. A(m, k) is a[m * lda + k], or a[k * lda + m] when
// transposed.
struct Product {
  std::size_t rows, inner, ld;
  const float* a;
  std::size_t lda;
  const float* b;
  float* c;
  const float* bias;  // start from bias instead of 0 and end with max(0, .); or null
};

// C[m .. m + kRows, n .. n + 8 kVectors] += A B over k in [k0, k1): kRows x kVectors sums stay in registers
// (at most 12 of the 16), each step of k needs kVectors loads and kRows broadcasts.
template <int kRows, int kVectors, bool kTransposed>
inline __attribute__((always_inline)) void tile(const Product& op, std::size_t m, std::size_t n,
                                                std::size_t k0, std::size_t k1) {
  __m256 sum[kRows][kVectors];
  float* c = op.c + m * op.ld + n;
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      if (k0 != 0) {
        sum[i][j] = _mm256_load_ps(c + i * op.ld + 8 * j);
      } else {
        sum[i][j] = op.bias != nullptr ? _mm256_load_ps(op.bias + n + 8 * j) : _mm256_setzero_ps();
      }
    }
  }
  const float* b = op.b + k0 * op.ld + n;
  const float* a = kTransposed ? op.a + k0 * op.lda + m : op.a + m * op.lda + k0;
  for (std::size_t k = k0; k < k1; ++k) {
    __m256 b_row[kVectors];
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) b_row[j] = _mm256_load_ps(b + 8 * j);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const __m256 a_value = _mm256_broadcast_ss(kTransposed ? a + i : a + i * op.lda);
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) sum[i][j] = _mm256_fmadd_ps(a_value, b_row[j], sum[i][j]);
    }
    b += op.ld;
    a += kTransposed ? op.lda : 1;
  }
  const bool last = k1 == op.inner;
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      __m256 value = sum[i][j];
      if (last && op.bias != nullptr) value = _mm256_max_ps(value, _mm256_setzero_ps());
      _mm256_store_ps(c + i * op.ld + 8 * j, value);
    }
  }
}

// All rows of one panel of kVectors * 8 columns.
template <int kRows, int kVectors, bool kTransposed>
void panel(const Product& op, std::size_t n, std::size_t k0, std::size_t k1) {
  std::size_t m = 0;
  for (; m + kRows <= op.rows; m += kRows) tile<kRows, kVectors, kTransposed>(op, m, n, k0, k1);
  for (; m + 4 <= op.rows; m += 4) tile<4, kVectors, kTransposed>(op, m, n, k0, k1);
  for (; m + 2 <= op.rows; m += 2) tile<2, kVectors, kTransposed>(op, m, n, k0, k1);
  for (; m < op.rows; ++m) tile<1, kVectors, kTransposed>(op, m, n, k0, k1);
}

template <bool kTransposed>
void product(const Product& op, std::size_t cols) {
  constexpr std::size_t kBlock =
      128;  // of k: a panel of B (128 x 24 floats) and the rows of A fit the 32 KB L1 cache
  const std::size_t num_blocks = (op.inner + kBlock - 1) / kBlock;
  for (std::size_t block = 0; block < num_blocks; ++block) {
    const std::size_t k0 = op.inner * block / num_blocks;
    const std::size_t k1 = op.inner * (block + 1) / num_blocks;
    std::size_t n = 0;
    std::size_t vectors = cols / kLanes;
    while (vectors >
           0) {  // panels of 3 vectors, the last ones of 2 so that a lone vector is left only when cols = 8
      if (vectors == 3 || vectors > 4) {
        panel<4, 3, kTransposed>(op, n, k0, k1);
        n += 3 * kLanes;
        vectors -= 3;
      } else if (vectors >= 2) {
        panel<6, 2, kTransposed>(op, n, k0, k1);
        n += 2 * kLanes;
        vectors -= 2;
      } else {
        panel<8, 1, kTransposed>(op, n, k0, k1);
        n += kLanes;
        vectors -= 1;
      }
    }
  }
}

inline float horizontal_sum(__m256 x) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  sum = _mm_add_ss(sum, _mm_movehdup_ps(sum));
  return _mm_cvtss_f32(sum);
}

void forward_hidden(const ForwardHidden& op) {
  product<false>({op.rows, op.inner, op.ld, op.src, op.ld_src, op.weights, op.dst, op.bias}, op.cols);
}

void weight_gradient(const WeightGradient& op) {
  product<true>({op.inner, op.rows, op.ld, op.src, op.ld_src, op.diff_dst, op.diff_weights, nullptr},
                op.cols);
}

void forward_logits(const ForwardLogits& op) {
  for (std::size_t i = 0; i < op.rows; ++i) {
    __m256 sum = _mm256_setzero_ps();
    for (std::size_t j = 0; j < op.cols; j += kLanes) {
      sum = _mm256_fmadd_ps(_mm256_load_ps(op.src + i * op.ld + j), _mm256_load_ps(op.weights + j), sum);
    }
    op.logits[i] = horizontal_sum(sum) + op.bias;
  }
}

void column_sums(const ColumnSums& op) {
  std::size_t n = 0;
  for (; n + 4 * kLanes <= op.cols; n += 4 * kLanes) {
    __m256 sum[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
    for (std::size_t i = 0; i < op.rows; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j)
        sum[j] = _mm256_add_ps(sum[j], _mm256_load_ps(op.src + i * op.ld + n + 8 * j));
    }
    for (int j = 0; j < 4; ++j) _mm256_store_ps(op.sums + n + 8 * j, sum[j]);
  }
  for (; n < op.cols; n += kLanes) {
    __m256 sum = _mm256_setzero_ps();
    for (std::size_t i = 0; i < op.rows; ++i)
      sum = _mm256_add_ps(sum, _mm256_load_ps(op.src + i * op.ld + n));
    _mm256_store_ps(op.sums + n, sum);
  }
}

// 8 x 8 block: pairs of rows are interleaved, then pairs of pairs, then the 128-bit halves exchanged.
inline void transpose_block(const float* src, float* dst, std::size_t ld) {
  __m256 r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_load_ps(src + i * ld);
  for (int i = 0; i < 8; i += 2) {
    s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_store_ps(dst + i * ld, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_store_ps(dst + (i + 4) * ld, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

void transpose(const Transpose& op) {
  for (std::size_t i = 0; i < op.size; i += kLanes) {
    for (std::size_t j = 0; j < op.size; j += kLanes)
      transpose_block(op.src + i * op.ld + j, op.dst + j * op.ld + i, op.ld);
  }
}

double adam_step(const AdamStep& op) {
  const __m256 penalty = _mm256_set1_ps(op.weight_penalty), scale = _mm256_set1_ps(op.scale);
  const __m256 step = _mm256_set1_ps(op.step), epsilon = _mm256_set1_ps(op.epsilon);
  const __m256 beta1 = _mm256_set1_ps(op.beta1), one_minus_beta1 = _mm256_set1_ps(op.one_minus_beta1);
  const __m256 beta2 = _mm256_set1_ps(op.beta2), one_minus_beta2 = _mm256_set1_ps(op.one_minus_beta2);
  __m256 sum_of_squares = _mm256_setzero_ps();
  for (std::size_t i = 0; i < op.count; i += kLanes) {
    const __m256 w = _mm256_load_ps(op.weights + i);
    sum_of_squares = _mm256_fmadd_ps(w, w, sum_of_squares);
    const __m256 g = _mm256_mul_ps(_mm256_fmadd_ps(penalty, w, _mm256_load_ps(op.grad + i)), scale);
    const __m256 m = _mm256_fmadd_ps(beta1, _mm256_load_ps(op.m + i), _mm256_mul_ps(one_minus_beta1, g));
    const __m256 v =
        _mm256_fmadd_ps(beta2, _mm256_load_ps(op.v + i), _mm256_mul_ps(_mm256_mul_ps(one_minus_beta2, g), g));
    _mm256_store_ps(op.m + i, m);
    _mm256_store_ps(op.v + i, v);
    const __m256 change = _mm256_div_ps(_mm256_mul_ps(step, m), _mm256_add_ps(_mm256_sqrt_ps(v), epsilon));
    _mm256_store_ps(op.weights + i, _mm256_sub_ps(w, change));
  }
  return horizontal_sum(sum_of_squares);
}

}  // namespace

const Kernels kKernels = {
    "avx2",          forward_hidden, forward_logits, backward_logits, backward_hidden, hidden_weight_gradient,
    weight_gradient, column_sums,    transpose,      adam_step};

}  // namespace nrec::small_mlp::avx2
