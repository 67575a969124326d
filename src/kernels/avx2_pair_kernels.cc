// AVX2 + FMA, float32. Compiled with its own flags: nothing here may be inlined into other files, so no std containers.
#include <immintrin.h>

#include <cstddef>

#include "kernels/pair_kernels_isa.h"

namespace nrec::avx2 {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::size_t kRowBlock = 6;     // 6 x 16 accumulators, 2 weights, 1 broadcast: 15 registers
constexpr std::size_t kRowsInL1 = 48;    // rows of A that share a weight panel while both are in L1
constexpr std::size_t kMomentRows = 64;  // float sums are added to the double ones this often

void pack(const float* w, std::size_t k, std::size_t n, float* packed) {
  for (std::size_t panel = 0; panel < n / kFeatureBlock; ++panel) {
    for (std::size_t i = 0; i < k; ++i, packed += kFeatureBlock) {
      const float* row = w + i * n + panel * kFeatureBlock;
      _mm256_storeu_ps(packed, _mm256_loadu_ps(row));
      _mm256_storeu_ps(packed + kLanes, _mm256_loadu_ps(row + kLanes));
    }
  }
}

void pack_transposed(const float* w, std::size_t k, std::size_t n, float* packed) {
  for (std::size_t panel = 0; panel < k / kFeatureBlock; ++panel) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t c = 0; c < kFeatureBlock; ++c) *packed++ = w[(panel * kFeatureBlock + c) * n + j];
    }
  }
}

// acc[R][16] over `depth` steps: a at a[r * row_step + i * depth_step], b at b[i * b_step].
template <int R, bool kDepthIsContiguous>
inline void multiply(const float* a, std::size_t stride, const float* b, std::size_t b_step,
                     std::size_t depth, __m256 (&low)[R], __m256 (&high)[R]) {
  for (std::size_t i = 0; i < depth; ++i) {
    const __m256 b0 = _mm256_loadu_ps(b);
    const __m256 b1 = _mm256_loadu_ps(b + kLanes);
    b += b_step;
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const __m256 value = _mm256_broadcast_ss(kDepthIsContiguous ? a + r * stride + i : a + i * stride + r);
      low[r] = _mm256_fmadd_ps(value, b0, low[r]);
      high[r] = _mm256_fmadd_ps(value, b1, high[r]);
    }
  }
}

template <int R>
void gemm_rows(const float* a, std::size_t lda, std::size_t k, const float* panel, const float* bias,
               bool accumulate, float* c, std::size_t ldc) {
  __m256 low[R];
  __m256 high[R];
  const __m256 bias0 = bias ? _mm256_loadu_ps(bias) : _mm256_setzero_ps();
  const __m256 bias1 = bias ? _mm256_loadu_ps(bias + kLanes) : _mm256_setzero_ps();
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    low[r] = accumulate ? _mm256_add_ps(bias0, _mm256_loadu_ps(c + r * ldc)) : bias0;
    high[r] = accumulate ? _mm256_add_ps(bias1, _mm256_loadu_ps(c + r * ldc + kLanes)) : bias1;
  }
  multiply<R, true>(a, lda, panel, kFeatureBlock, k, low, high);
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    _mm256_storeu_ps(c + r * ldc, low[r]);
    _mm256_storeu_ps(c + r * ldc + kLanes, high[r]);
  }
}

void gemm(const float* a, std::size_t lda, std::size_t m, std::size_t k, const float* packed, std::size_t n,
          const float* bias, bool accumulate, float* c, std::size_t ldc) {
  for (std::size_t first = 0; first < m; first += kRowsInL1) {
    const std::size_t last = first + kRowsInL1 < m ? first + kRowsInL1 : m;
    for (std::size_t j = 0; j < n; j += kFeatureBlock) {
      const float* panel = packed + j * k;
      const float* panel_bias = bias ? bias + j : nullptr;
      std::size_t r = first;
      for (; r + kRowBlock <= last; r += kRowBlock)
        gemm_rows<6>(a + r * lda, lda, k, panel, panel_bias, accumulate, c + r * ldc + j, ldc);
      const float* rest = a + r * lda;
      float* out = c + r * ldc + j;
      switch (last - r) {
        case 5:
          gemm_rows<5>(rest, lda, k, panel, panel_bias, accumulate, out, ldc);
          break;
        case 4:
          gemm_rows<4>(rest, lda, k, panel, panel_bias, accumulate, out, ldc);
          break;
        case 3:
          gemm_rows<3>(rest, lda, k, panel, panel_bias, accumulate, out, ldc);
          break;
        case 2:
          gemm_rows<2>(rest, lda, k, panel, panel_bias, accumulate, out, ldc);
          break;
        case 1:
          gemm_rows<1>(rest, lda, k, panel, panel_bias, accumulate, out, ldc);
          break;
        default:
          break;
      }
    }
  }
}

template <int R>
void weights_rows(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m, float* dw,
                  std::size_t n) {
  __m256 low[R];
  __m256 high[R];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    low[r] = _mm256_loadu_ps(dw + r * n);
    high[r] = _mm256_loadu_ps(dw + r * n + kLanes);
  }
  multiply<R, false>(a, lda, d, ldd, m, low, high);
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    _mm256_storeu_ps(dw + r * n, low[r]);
    _mm256_storeu_ps(dw + r * n + kLanes, high[r]);
  }
}

void gemm_weights(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                  std::size_t k, std::size_t n, float* dw) {
  for (std::size_t first = 0; first < m; first += kRowsInL1) {
    const std::size_t rows = first + kRowsInL1 < m ? kRowsInL1 : m - first;
    const float* a_block = a + first * lda;
    for (std::size_t j = 0; j < n; j += kFeatureBlock) {
      const float* d_block = d + first * ldd + j;
      std::size_t i = 0;
      for (; i + kRowBlock <= k; i += kRowBlock)
        weights_rows<6>(a_block + i, lda, d_block, ldd, rows, dw + i * n + j, n);
      float* out = dw + i * n + j;
      switch (k - i) {
        case 5:
          weights_rows<5>(a_block + i, lda, d_block, ldd, rows, out, n);
          break;
        case 4:
          weights_rows<4>(a_block + i, lda, d_block, ldd, rows, out, n);
          break;
        case 3:
          weights_rows<3>(a_block + i, lda, d_block, ldd, rows, out, n);
          break;
        case 2:
          weights_rows<2>(a_block + i, lda, d_block, ldd, rows, out, n);
          break;
        case 1:
          weights_rows<1>(a_block + i, lda, d_block, ldd, rows, out, n);
          break;
        default:
          break;
      }
    }
  }
}

void add_rows(const float* u, const std::uint32_t* index, const float* v, std::size_t rows, std::size_t width,
              float* out) {
  for (std::size_t r = 0; r < rows; ++r, out += width) {
    const float* row = u + index[r] * width;
    for (std::size_t c = 0; c < width; c += kLanes) {
      _mm256_storeu_ps(out + c, _mm256_add_ps(_mm256_loadu_ps(row + c), _mm256_loadu_ps(v + c)));
    }
  }
}

void affine_relu(const float* z, std::size_t rows, std::size_t width, const float* scale, const float* shift,
                 float* a) {
  const __m256 zero = _mm256_setzero_ps();
  for (std::size_t r = 0; r < rows; ++r, z += width, a += width) {
    for (std::size_t c = 0; c < width; c += kLanes) {
      const __m256 y =
          _mm256_fmadd_ps(_mm256_loadu_ps(scale + c), _mm256_loadu_ps(z + c), _mm256_loadu_ps(shift + c));
      _mm256_storeu_ps(a + c, _mm256_max_ps(y, zero));
    }
  }
}

inline __m256 masked(__m256 d, __m256 y) {
  return _mm256_and_ps(d, _mm256_cmp_ps(y, _mm256_setzero_ps(), _CMP_GT_OQ));
}

void affine_relu_backward(const float* z, std::size_t rows, std::size_t width, const float* scale,
                          const float* shift, float* d, float* dz) {
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t start = r * width;
    for (std::size_t c = 0; c < width; c += kLanes) {
      const __m256 s = _mm256_loadu_ps(scale + c);
      const __m256 y = _mm256_fmadd_ps(s, _mm256_loadu_ps(z + start + c), _mm256_loadu_ps(shift + c));
      const __m256 value = masked(_mm256_loadu_ps(d + start + c), y);
      _mm256_storeu_ps(d + start + c, value);
      if (dz) _mm256_storeu_ps(dz + start + c, _mm256_fmadd_ps(s, value, _mm256_loadu_ps(dz + start + c)));
    }
  }
}

// out[0..7] += value, as doubles.
inline void add_to_doubles(double* out, __m256 value) {
  _mm256_storeu_pd(out, _mm256_add_pd(_mm256_loadu_pd(out), _mm256_cvtps_pd(_mm256_castps256_ps128(value))));
  _mm256_storeu_pd(out + 4,
                   _mm256_add_pd(_mm256_loadu_pd(out + 4), _mm256_cvtps_pd(_mm256_extractf128_ps(value, 1))));
}

void column_moments(const float* z, std::size_t rows, std::size_t width, const float* pivot, double* sum,
                    double* sum2) {
  for (std::size_t first = 0; first < rows; first += kMomentRows) {
    const std::size_t last = first + kMomentRows < rows ? first + kMomentRows : rows;
    for (std::size_t c = 0; c < width; c += kLanes) {
      const __m256 centre = _mm256_loadu_ps(pivot + c);
      __m256 s1 = _mm256_setzero_ps();
      __m256 s2 = _mm256_setzero_ps();
      for (std::size_t r = first; r < last; ++r) {
        const __m256 x = _mm256_sub_ps(_mm256_loadu_ps(z + r * width + c), centre);
        s1 = _mm256_add_ps(s1, x);
        s2 = _mm256_fmadd_ps(x, x, s2);
      }
      add_to_doubles(sum + c, s1);
      add_to_doubles(sum2 + c, s2);
    }
  }
}

void batch_norm_sums(const float* z, std::size_t rows, std::size_t width, const float* scale,
                     const float* shift, const float* mean, float* d, double* sum1, double* sum2) {
  for (std::size_t first = 0; first < rows; first += kMomentRows) {
    const std::size_t last = first + kMomentRows < rows ? first + kMomentRows : rows;
    for (std::size_t c = 0; c < width; c += kLanes) {
      const __m256 gain = _mm256_loadu_ps(scale + c);
      const __m256 offset = _mm256_loadu_ps(shift + c);
      const __m256 centre = _mm256_loadu_ps(mean + c);
      __m256 s1 = _mm256_setzero_ps();
      __m256 s2 = _mm256_setzero_ps();
      for (std::size_t r = first; r < last; ++r) {
        const __m256 x = _mm256_loadu_ps(z + r * width + c);
        const __m256 value = masked(_mm256_loadu_ps(d + r * width + c), _mm256_fmadd_ps(gain, x, offset));
        _mm256_storeu_ps(d + r * width + c, value);
        s1 = _mm256_add_ps(s1, value);
        s2 = _mm256_fmadd_ps(value, _mm256_sub_ps(x, centre), s2);
      }
      add_to_doubles(sum1 + c, s1);
      add_to_doubles(sum2 + c, s2);
    }
  }
}

void batch_norm_backward(const float* z, const float* d, std::size_t rows, std::size_t width, const float* c0,
                         const float* c1, const float* c2, const float* mean, bool accumulate, float* dz) {
  for (std::size_t r = 0; r < rows; ++r, z += width, d += width, dz += width) {
    for (std::size_t c = 0; c < width; c += kLanes) {
      const __m256 x = _mm256_sub_ps(_mm256_loadu_ps(z + c), _mm256_loadu_ps(mean + c));
      __m256 value = _mm256_fmadd_ps(_mm256_loadu_ps(c2 + c), x, _mm256_loadu_ps(c1 + c));
      value = _mm256_fmadd_ps(_mm256_loadu_ps(c0 + c), _mm256_loadu_ps(d + c), value);
      if (accumulate) value = _mm256_add_ps(value, _mm256_loadu_ps(dz + c));
      _mm256_storeu_ps(dz + c, value);
    }
  }
}

inline float horizontal_sum(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  s = _mm_add_ss(s, _mm_movehdup_ps(s));
  return _mm_cvtss_f32(s);
}

// Ones in the first `count` lanes.
inline __m256 lane_mask(std::size_t count) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), index));
}

inline __m256 feature_mask(std::size_t c, std::size_t features) {
  return c + kLanes <= features ? lane_mask(kLanes) : lane_mask(c < features ? features - c : 0);
}

void layer_norm_relu(const float* z, std::size_t rows, std::size_t width, std::size_t features, float eps,
                     const float* gain, const float* shift, float* mean, float* rstd, float* a) {
  const float inverse_n = 1.0f / static_cast<float>(features);
  const __m256 zero = _mm256_setzero_ps();
  for (std::size_t r = 0; r < rows; ++r, z += width, a += width) {
    __m256 sum = zero;
    for (std::size_t c = 0; c < width; c += kLanes)
      sum = _mm256_add_ps(sum, _mm256_and_ps(_mm256_loadu_ps(z + c), feature_mask(c, features)));
    const float centre = horizontal_sum(sum) * inverse_n;
    const __m256 centres = _mm256_set1_ps(centre);
    __m256 sum2 = zero;
    for (std::size_t c = 0; c < width; c += kLanes) {
      const __m256 x =
          _mm256_and_ps(_mm256_sub_ps(_mm256_loadu_ps(z + c), centres), feature_mask(c, features));
      sum2 = _mm256_fmadd_ps(x, x, sum2);
    }
    const float inverse = 1.0f / __builtin_sqrtf(horizontal_sum(sum2) * inverse_n + eps);
    mean[r] = centre;
    rstd[r] = inverse;
    const __m256 inverses = _mm256_set1_ps(inverse);
    for (std::size_t c = 0; c < width; c += kLanes) {
      const __m256 xhat = _mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(z + c), centres), inverses);
      const __m256 y = _mm256_fmadd_ps(_mm256_loadu_ps(gain + c), xhat, _mm256_loadu_ps(shift + c));
      _mm256_storeu_ps(a + c, _mm256_and_ps(_mm256_max_ps(y, zero), feature_mask(c, features)));
    }
  }
}

void layer_norm_relu_backward(const float* z, std::size_t rows, std::size_t width, std::size_t features,
                              const float* gain, const float* shift, const float* mean, const float* rstd,
                              float* d, bool accumulate, float* dz, float* dgain, float* dshift) {
  const float inverse_n = 1.0f / static_cast<float>(features);
  for (std::size_t r = 0; r < rows; ++r, z += width, d += width, dz += width) {
    const __m256 centre = _mm256_set1_ps(mean[r]);
    const __m256 inverse = _mm256_set1_ps(rstd[r]);
    __m256 sum_d = _mm256_setzero_ps();
    __m256 sum_dx = _mm256_setzero_ps();
    for (std::size_t c = 0; c < width; c += kLanes) {
      const __m256 g = _mm256_loadu_ps(gain + c);
      const __m256 xhat = _mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(z + c), centre), inverse);
      __m256 value = masked(_mm256_loadu_ps(d + c), _mm256_fmadd_ps(g, xhat, _mm256_loadu_ps(shift + c)));
      value = _mm256_and_ps(value, feature_mask(c, features));
      _mm256_storeu_ps(dgain + c, _mm256_fmadd_ps(value, xhat, _mm256_loadu_ps(dgain + c)));
      _mm256_storeu_ps(dshift + c, _mm256_add_ps(value, _mm256_loadu_ps(dshift + c)));
      const __m256 scaled = _mm256_mul_ps(g, value);
      _mm256_storeu_ps(d + c, scaled);
      sum_d = _mm256_add_ps(sum_d, scaled);
      sum_dx = _mm256_fmadd_ps(scaled, xhat, sum_dx);
    }
    const __m256 mean_d = _mm256_set1_ps(horizontal_sum(sum_d) * inverse_n);
    const __m256 mean_dx = _mm256_set1_ps(horizontal_sum(sum_dx) * inverse_n);
    for (std::size_t c = 0; c < width; c += kLanes) {
      const __m256 xhat = _mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(z + c), centre), inverse);
      __m256 value =
          _mm256_sub_ps(_mm256_sub_ps(_mm256_loadu_ps(d + c), mean_d), _mm256_mul_ps(xhat, mean_dx));
      value = _mm256_and_ps(_mm256_mul_ps(value, inverse), feature_mask(c, features));
      if (accumulate) value = _mm256_add_ps(value, _mm256_loadu_ps(dz + c));
      _mm256_storeu_ps(dz + c, value);
    }
  }
}

void row_dots(const float* z, std::size_t rows, std::size_t width, const float* w, float bias, float* out) {
  for (std::size_t r = 0; r < rows; ++r, z += width) {
    __m256 sum = _mm256_setzero_ps();
    for (std::size_t c = 0; c < width; c += kLanes)
      sum = _mm256_fmadd_ps(_mm256_loadu_ps(z + c), _mm256_loadu_ps(w + c), sum);
    out[r] = horizontal_sum(sum) + bias;
  }
}

void row_dots_backward(const float* z, const float* d, std::size_t rows, std::size_t width, const float* w,
                       float* dz, float* dw) {
  for (std::size_t r = 0; r < rows; ++r, z += width, dz += width) {
    const __m256 value = _mm256_set1_ps(d[r]);
    for (std::size_t c = 0; c < width; c += kLanes) {
      _mm256_storeu_ps(dz + c, _mm256_mul_ps(value, _mm256_loadu_ps(w + c)));
      _mm256_storeu_ps(dw + c, _mm256_fmadd_ps(value, _mm256_loadu_ps(z + c), _mm256_loadu_ps(dw + c)));
    }
  }
}

void column_sums(const float* d, std::size_t rows, std::size_t width, float* out) {
  for (std::size_t c = 0; c < width; c += kLanes) {
    __m256 sum = _mm256_setzero_ps();
    for (std::size_t r = 0; r < rows; ++r) sum = _mm256_add_ps(sum, _mm256_loadu_ps(d + r * width + c));
    _mm256_storeu_ps(out + c, _mm256_add_ps(sum, _mm256_loadu_ps(out + c)));
  }
}

void adam(float* w, const float* grad, float* m, float* v, std::size_t n, float grad_scale, float beta1,
          float beta2, float rate, float correction2, float eps) {
  for (std::size_t i = 0; i < n; ++i) {
    const float g = grad_scale * grad[i];
    m[i] = beta1 * m[i] + (1.0f - beta1) * g;
    v[i] = beta2 * v[i] + (1.0f - beta2) * g * g;
    w[i] -= rate * m[i] / (__builtin_sqrtf(v[i]) * correction2 + eps);
  }
}

}  // namespace

const PairKernels& pair_kernels_table() {
  static const PairKernels table = {"avx2",
                                    pack,
                                    pack_transposed,
                                    gemm,
                                    gemm_weights,
                                    add_rows,
                                    affine_relu,
                                    affine_relu_backward,
                                    column_moments,
                                    batch_norm_sums,
                                    batch_norm_backward,
                                    layer_norm_relu,
                                    layer_norm_relu_backward,
                                    row_dots,
                                    row_dots_backward,
                                    column_sums,
                                    adam};
  return table;
}

}  // namespace nrec::avx2
