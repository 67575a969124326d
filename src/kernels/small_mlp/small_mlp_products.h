#pragma once

// Matrix products, sums and Adam of the small perceptron. An element is summed in the same order whatever the registers V, so all of
// them give the same bits. Rules of small_mlp_vectors.h.

#include "kernels/small_mlp/small_mlp_kernels.h"
#include "kernels/small_mlp/small_mlp_vectors.h"

namespace nrec::small_mlp {
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

// C[m .. m + kRows, kVectors vectors from column n] += A B over k in [k0, k1): kRows x kVectors sums stay in registers, each
// step of k needs kVectors loads and kRows broadcasts.
template <class V, int kRows, int kVectors, bool kTransposed>
inline __attribute__((always_inline)) void tile(const Product& op, std::size_t m, std::size_t n,
                                                std::size_t k0, std::size_t k1) {
  typename V::Floats sum[kRows][kVectors];
  float* c = op.c + m * op.ld + n;
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      if (k0 != 0) {
        sum[i][j] = V::load(c + i * op.ld + V::kWidth * j);
      } else {
        sum[i][j] = op.bias != nullptr ? V::load(op.bias + n + V::kWidth * j) : V::zero();
      }
    }
  }
  const float* b = op.b + k0 * op.ld + n;
  const float* a = kTransposed ? op.a + k0 * op.lda + m : op.a + m * op.lda + k0;
  for (std::size_t k = k0; k < k1; ++k) {
    typename V::Floats b_row[kVectors];
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) b_row[j] = V::load(b + V::kWidth * j);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const typename V::Floats a_value = V::all(kTransposed ? a[i] : a[i * op.lda]);
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) sum[i][j] = V::fmadd(a_value, b_row[j], sum[i][j]);
    }
    b += op.ld;
    a += kTransposed ? op.lda : 1;
  }
  const bool last = k1 == op.inner;
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      typename V::Floats value = sum[i][j];
      if (last && op.bias != nullptr) value = V::max(value, V::zero());
      V::store(c + i * op.ld + V::kWidth * j, value);
    }
  }
}

// All rows of one panel of kVectors vectors of columns.
template <class V, int kRows, int kVectors, bool kTransposed>
void panel(const Product& op, std::size_t n, std::size_t k0, std::size_t k1) {
  std::size_t m = 0;
  for (; m + kRows <= op.rows; m += kRows) tile<V, kRows, kVectors, kTransposed>(op, m, n, k0, k1);
  for (; m + 4 <= op.rows; m += 4) tile<V, 4, kVectors, kTransposed>(op, m, n, k0, k1);
  for (; m + 2 <= op.rows; m += 2) tile<V, 2, kVectors, kTransposed>(op, m, n, k0, k1);
  for (; m < op.rows; ++m) tile<V, 1, kVectors, kTransposed>(op, m, n, k0, k1);
}

template <class V, bool kTransposed>
void product(const Product& op, std::size_t cols) {
  constexpr std::size_t kBlock =
      128;  // of k: a panel of B (128 x 24 floats) and the rows of A fit the 32 KB L1 cache
  const std::size_t num_blocks = (op.inner + kBlock - 1) / kBlock;
  for (std::size_t block = 0; block < num_blocks; ++block) {
    const std::size_t k0 = op.inner * block / num_blocks;
    const std::size_t k1 = op.inner * (block + 1) / num_blocks;
    std::size_t n = 0;
    std::size_t vectors = cols / V::kWidth;
    while (
        vectors >
        0) {  // panels of 3 vectors, the last ones of 2 so that a lone vector is left only when there is no other
      if (vectors == 3 || vectors > 4) {
        panel<V, V::kRowsOfThree, 3, kTransposed>(op, n, k0, k1);
        n += 3 * V::kWidth;
        vectors -= 3;
      } else if (vectors >= 2) {
        panel<V, V::kRowsOfTwo, 2, kTransposed>(op, n, k0, k1);
        n += 2 * V::kWidth;
        vectors -= 2;
      } else {
        panel<V, V::kRowsOfOne, 1, kTransposed>(op, n, k0, k1);
        n += V::kWidth;
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

template <class V>
void forward_hidden(const ForwardHidden& op) {
  product<V, false>({op.rows, op.inner, op.ld, op.src, op.ld_src, op.weights, op.dst, op.bias}, op.cols);
}

template <class V>
void weight_gradient(const WeightGradient& op) {
  product<V, true>({op.inner, op.rows, op.ld, op.src, op.ld_src, op.diff_dst, op.diff_weights, nullptr},
                   op.cols);
}

// Sums across columns have eight parts whatever the registers.
void forward_logits(const ForwardLogits& op) {
  for (std::size_t i = 0; i < op.rows; ++i) {
    __m256 sum = _mm256_setzero_ps();
    for (std::size_t j = 0; j < op.cols; j += Ymm::kWidth) {
      sum = _mm256_fmadd_ps(_mm256_load_ps(op.src + i * op.ld + j), _mm256_load_ps(op.weights + j), sum);
    }
    op.logits[i] = horizontal_sum(sum) + op.bias;
  }
}

template <class V, int kVectors>
void column_sums_of(const ColumnSums& op, std::size_t n) {
  typename V::Floats sum[kVectors];
  for (int j = 0; j < kVectors; ++j) sum[j] = V::zero();
  for (std::size_t i = 0; i < op.rows; ++i) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kVectors; ++j)
      sum[j] = V::add(sum[j], V::load(op.src + i * op.ld + n + V::kWidth * j));
  }
  for (std::size_t j = 0; j < kVectors; ++j) V::store(op.sums + n + V::kWidth * j, sum[j]);
}

template <class V>
void column_sums(const ColumnSums& op) {
  std::size_t n = 0;
  for (; n + 4 * V::kWidth <= op.cols; n += 4 * V::kWidth) column_sums_of<V, 4>(op, n);
  for (; n < op.cols; n += V::kWidth) column_sums_of<V, 1>(op, n);
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
  for (std::size_t i = 0; i < op.size; i += Ymm::kWidth) {
    for (std::size_t j = 0; j < op.size; j += Ymm::kWidth)
      transpose_block(op.src + i * op.ld + j, op.dst + j * op.ld + i, op.ld);
  }
}

template <class V>
double adam_step(const AdamStep& op) {
  using Floats = typename V::Floats;
  const Floats penalty = V::all(op.weight_penalty), scale = V::all(op.scale);
  const Floats step = V::all(op.step), epsilon = V::all(op.epsilon);
  const Floats beta1 = V::all(op.beta1), one_minus_beta1 = V::all(op.one_minus_beta1);
  const Floats beta2 = V::all(op.beta2), one_minus_beta2 = V::all(op.one_minus_beta2);
  __m256 sum_of_squares = _mm256_setzero_ps();
  for (std::size_t i = 0; i < op.count; i += V::kWidth) {
    const Floats w = V::load(op.weights + i);
    sum_of_squares = V::add_squares(sum_of_squares, w);
    const Floats g = V::mul(V::fmadd(penalty, w, V::load(op.grad + i)), scale);
    const Floats m = V::fmadd(beta1, V::load(op.m + i), V::mul(one_minus_beta1, g));
    const Floats v = V::fmadd(beta2, V::load(op.v + i), V::mul(V::mul(one_minus_beta2, g), g));
    V::store(op.m + i, m);
    V::store(op.v + i, v);
    const Floats change = V::div(V::mul(step, m), V::add(V::sqrt(v), epsilon));
    V::store(op.weights + i, V::sub(w, change));
  }
  return horizontal_sum(sum_of_squares);
}

}  // namespace
}  // namespace nrec::small_mlp
