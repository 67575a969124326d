// AVX2 + FMA, float32. Compiled with its own flags: nothing here may be inlined into other files, so no std containers.
#include <immintrin.h>

#include <cstddef>

#include "kernels/avx2_matrix_products.h"
#include "kernels/lane_masks.h"
#include "kernels/pair_kernels_isa.h"
#include "kernels/row_sums.h"

namespace nrec::avx2 {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::size_t kMomentRows = 64;  // float sums are added to the double ones this often

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
                     const float* shift, const float* mean, const float* d, float* out, double* sum1,
                     double* sum2) {
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
        _mm256_storeu_ps(out + r * width + c, value);
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

// Eight columns of a row: the kHalf-th half of sixteen.
template <int kHalf>
struct Whole {
  static constexpr int half = kHalf;
  __m256 operator()(__m256 v) const { return v; }
};
template <int kHalf>
struct Part {
  static constexpr int half = kHalf;
  __m256 mask;
  __m256 operator()(__m256 v) const { return _mm256_and_ps(v, mask); }
};

// Columns of a row whose first `features` are real: whole registers of them, then those with padding, where it is masked away.
// step(c, real) with real(v) the real lanes of v at column c.
template <class Step>
inline __attribute__((always_inline)) void for_columns(std::size_t width, std::size_t features,
                                                       const Step& step) {
  std::size_t c = 0;
  for (; c + 2 * kLanes <= features; c += 2 * kLanes) {
    step(c, Whole<0>());
    step(c + kLanes, Whole<1>());
  }
  const auto mask = [&](std::size_t at) {
    return _mm256_castsi256_ps(first_lanes(at < features ? features - at : 0));
  };
  for (; c < width; c += 2 * kLanes) {
    step(c, Part<0>{mask(c)});
    if (c + kLanes < width) step(c + kLanes, Part<1>{mask(c + kLanes)});
  }
}

// Registers of a row are added up in two sums by turns, the halves of one of AVX-512; then the lanes of both.
inline __m128 lane_sums(const __m256 (&v)[4][2]) {
  __m256 whole[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) whole[r] = _mm256_add_ps(v[r][0], v[r][1]);
  return horizontal_sums(whole);
}

// Four rows at once, so that no addition waits for the one before; R <= 4 of them exist.
template <int R>
inline void layer_norm_moments_rows(const float* z, std::size_t width, std::size_t features, float eps,
                                    float* mean, float* rstd) {
  const __m128 inverse_n = _mm_set1_ps(1.0f / static_cast<float>(features));
  const __m256 zero = _mm256_setzero_ps();
  __m256 sums[4][2] = {{zero, zero}, {zero, zero}, {zero, zero}, {zero, zero}};
  for_columns(width, features, [&](std::size_t c, auto real) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
      sums[r][real.half] = _mm256_add_ps(sums[r][real.half], real(_mm256_loadu_ps(z + r * width + c)));
  });
  alignas(16) float centre[4];
  alignas(16) float inverse[4];
  _mm_store_ps(centre, _mm_mul_ps(lane_sums(sums), inverse_n));
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) sums[r][0] = sums[r][1] = zero;
  for_columns(width, features, [&](std::size_t c, auto real) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const __m256 x = real(_mm256_sub_ps(_mm256_loadu_ps(z + r * width + c), _mm256_set1_ps(centre[r])));
      sums[r][real.half] = _mm256_fmadd_ps(x, x, sums[r][real.half]);
    }
  });
  const __m128 variance = _mm_fmadd_ps(lane_sums(sums), inverse_n, _mm_set1_ps(eps));
  _mm_store_ps(inverse, _mm_div_ps(_mm_set1_ps(1.0f), _mm_sqrt_ps(variance)));
  for (int r = 0; r < R; ++r) {
    mean[r] = centre[r];
    rstd[r] = inverse[r];
  }
}

void layer_norm_moments(const float* z, std::size_t rows, std::size_t width, std::size_t features, float eps,
                        float* mean, float* rstd) {
  std::size_t r = 0;
  for (; r + 4 <= rows; r += 4)
    layer_norm_moments_rows<4>(z + r * width, width, features, eps, mean + r, rstd + r);
  for (; r < rows; ++r) layer_norm_moments_rows<1>(z + r * width, width, features, eps, mean + r, rstd + r);
}

// R rows together share the loads of gain and shift.
template <int R>
inline void layer_norm_relu_rows(const float* z, std::size_t width, std::size_t features, const float* gain,
                                 const float* shift, const float* mean, const float* rstd, float* a) {
  for_columns(width, features, [&](std::size_t c, auto real) {
    const __m256 g = _mm256_loadu_ps(gain + c);
    const __m256 offset = _mm256_loadu_ps(shift + c);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const __m256 xhat =
          _mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(z + r * width + c), _mm256_set1_ps(mean[r])),
                        _mm256_set1_ps(rstd[r]));
      const __m256 y = _mm256_max_ps(_mm256_fmadd_ps(g, xhat, offset), _mm256_setzero_ps());
      _mm256_storeu_ps(a + r * width + c, real(y));
    }
  });
}

void layer_norm_relu(const float* z, std::size_t rows, std::size_t width, std::size_t features,
                     const float* gain, const float* shift, const float* mean, const float* rstd, float* a) {
  std::size_t r = 0;
  for (; r + 4 <= rows; r += 4)
    layer_norm_relu_rows<4>(z + r * width, width, features, gain, shift, mean + r, rstd + r, a + r * width);
  for (; r < rows; ++r)
    layer_norm_relu_rows<1>(z + r * width, width, features, gain, shift, mean + r, rstd + r, a + r * width);
}

constexpr int kBackwardRows = 2;

// R <= 4 rows together share the loads and stores of dgain and dshift. kNormalised: z has xhat, and there is no mean.
template <int R, bool kNormalised>
inline void layer_norm_backward_rows(const float* z, std::size_t width, std::size_t features,
                                     const float* gain, const float* shift, const float* mean,
                                     const float* rstd, float* d, bool accumulate, float* dz, float* dgain,
                                     float* dshift) {
  const __m256 zero = _mm256_setzero_ps();
  __m256 sum_d[4][2] = {{zero, zero}, {zero, zero}, {zero, zero}, {zero, zero}};
  __m256 sum_dx[4][2] = {{zero, zero}, {zero, zero}, {zero, zero}, {zero, zero}};
  for_columns(width, features, [&](std::size_t c, auto real) {
    const __m256 g = _mm256_loadu_ps(gain + c);
    const __m256 offset = _mm256_loadu_ps(shift + c);
    __m256 gains = _mm256_loadu_ps(dgain + c);
    __m256 shifts = _mm256_loadu_ps(dshift + c);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const std::size_t at = static_cast<std::size_t>(r) * width + c;
      __m256 xhat = _mm256_loadu_ps(z + at);
      if constexpr (kNormalised)
        xhat = real(xhat);  // 0 times what is in padding columns must be 0
      else
        xhat = _mm256_mul_ps(_mm256_sub_ps(xhat, _mm256_set1_ps(mean[r])), _mm256_set1_ps(rstd[r]));
      const __m256 value = real(masked(_mm256_loadu_ps(d + at), _mm256_fmadd_ps(g, xhat, offset)));
      gains = _mm256_fmadd_ps(value, xhat, gains);
      shifts = _mm256_add_ps(value, shifts);
      const __m256 scaled = _mm256_mul_ps(g, value);
      _mm256_storeu_ps(d + at, scaled);
      sum_d[r][real.half] = _mm256_add_ps(sum_d[r][real.half], scaled);
      sum_dx[r][real.half] = _mm256_fmadd_ps(scaled, xhat, sum_dx[r][real.half]);
    }
    _mm256_storeu_ps(dgain + c, gains);
    _mm256_storeu_ps(dshift + c, shifts);
  });
  const float inverse_n = 1.0f / static_cast<float>(features);
  alignas(16) float total_d[4];
  alignas(16) float total_dx[4];
  _mm_store_ps(total_d, lane_sums(sum_d));
  _mm_store_ps(total_dx, lane_sums(sum_dx));
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    const LayerNormTerms terms = layer_norm_terms(total_d[r], total_dx[r], inverse_n, rstd[r], kNormalised);
    const __m256 centre = kNormalised ? zero : _mm256_set1_ps(mean[r]);
    const __m256 inverse = _mm256_set1_ps(rstd[r]);
    const __m256 constant = _mm256_set1_ps(terms.constant);
    const __m256 slope = _mm256_set1_ps(terms.slope);
    const std::size_t row = static_cast<std::size_t>(r) * width;
    for_columns(width, features, [&](std::size_t c, auto real) {
      __m256 x = _mm256_loadu_ps(z + row + c);
      if constexpr (!kNormalised) x = _mm256_sub_ps(x, centre);
      __m256 value = _mm256_fmadd_ps(inverse, _mm256_loadu_ps(d + row + c), constant);
      value = real(_mm256_fmadd_ps(slope, x, value));
      if (accumulate) value = _mm256_add_ps(value, _mm256_loadu_ps(dz + row + c));
      _mm256_storeu_ps(dz + row + c, value);
    });
  }
}

template <bool kNormalised>
void layer_norm_backward(const float* z, std::size_t rows, std::size_t width, std::size_t features,
                         const float* gain, const float* shift, const float* mean, const float* rstd,
                         float* d, bool accumulate, float* dz, float* dgain, float* dshift) {
  const auto mean_of = [&](std::size_t r) { return kNormalised ? nullptr : mean + r; };
  std::size_t r = 0;
  for (; r + kBackwardRows <= rows; r += kBackwardRows)
    layer_norm_backward_rows<kBackwardRows, kNormalised>(z + r * width, width, features, gain, shift,
                                                         mean_of(r), rstd + r, d + r * width, accumulate,
                                                         dz + r * width, dgain, dshift);
  for (; r < rows; ++r)
    layer_norm_backward_rows<1, kNormalised>(z + r * width, width, features, gain, shift, mean_of(r),
                                             rstd + r, d + r * width, accumulate, dz + r * width, dgain,
                                             dshift);
}

void layer_norm_relu_backward(const float* z, std::size_t rows, std::size_t width, std::size_t features,
                              const float* gain, const float* shift, const float* mean, const float* rstd,
                              float* d, bool accumulate, float* dz, float* dgain, float* dshift) {
  (mean ? layer_norm_backward<false> : layer_norm_backward<true>)(z, rows, width, features, gain, shift, mean,
                                                                  rstd, d, accumulate, dz, dgain, dshift);
}

void row_dots(const float* z, std::size_t rows, std::size_t width, const float* w, float bias, float* out) {
  for (std::size_t r = 0; r < rows; ++r, z += width) {
    __m256 sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for_columns(width, width, [&](std::size_t c, auto real) {
      sums[real.half] = _mm256_fmadd_ps(_mm256_loadu_ps(z + c), _mm256_loadu_ps(w + c), sums[real.half]);
    });
    out[r] = horizontal_sum(_mm256_add_ps(sums[0], sums[1])) + bias;
  }
}

void row_dots_backward(const float* z, const float* d, std::size_t rows, std::size_t width, const float* w,
                       float* dz, float* dw) {
  for (std::size_t r = 0; r < rows; ++r, z += width, dz += width) {
    const __m256 value = _mm256_set1_ps(d[r]);
    for (std::size_t c = 0; c < width; c += kLanes) {
      _mm256_storeu_ps(dw + c, _mm256_fmadd_ps(value, _mm256_loadu_ps(z + c), _mm256_loadu_ps(dw + c)));
      _mm256_storeu_ps(dz + c, _mm256_mul_ps(value, _mm256_loadu_ps(w + c)));
    }
  }
}

void column_sums(const float* d, std::size_t rows, std::size_t width, float* out) {
  std::size_t c = 0;
  for (; c + 2 * kLanes <= width; c += 2 * kLanes) {  // whole cache lines
    __m256 low = _mm256_setzero_ps();
    __m256 high = _mm256_setzero_ps();
    for (std::size_t r = 0; r < rows; ++r) {
      low = _mm256_add_ps(low, _mm256_loadu_ps(d + r * width + c));
      high = _mm256_add_ps(high, _mm256_loadu_ps(d + r * width + c + kLanes));
    }
    _mm256_storeu_ps(out + c, _mm256_add_ps(low, _mm256_loadu_ps(out + c)));
    _mm256_storeu_ps(out + c + kLanes, _mm256_add_ps(high, _mm256_loadu_ps(out + c + kLanes)));
  }
  for (; c < width; c += kLanes) {
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
  constexpr MatrixProducts products = {pack, pack_transposed, gemm, gemm_weights};
  static const PairKernels table = {"avx2",
                                    products,
                                    products,
                                    nullptr,
                                    add_rows,
                                    affine_relu,
                                    affine_relu_backward,
                                    column_moments,
                                    batch_norm_sums,
                                    batch_norm_backward,
                                    layer_norm_moments,
                                    layer_norm_relu,
                                    layer_norm_relu_backward,
                                    row_dots,
                                    row_dots_backward,
                                    column_sums,
                                    adam};
  return table;
}

}  // namespace nrec::avx2
