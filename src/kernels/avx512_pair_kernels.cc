// AVX-512F, float32: what goes through rows of features, in the order of AVX2, so that both give the same bits.
// Packing and Adam are those of AVX2. Compiled with its own flags: nothing here may be inlined into other files, so
// no std containers.
#include <immintrin.h>

#include <cstddef>

#include "kernels/avx512_matrix_products.h"
#include "kernels/lane_masks.h"
#include "kernels/pair_kernels_isa.h"
#include "kernels/row_sums.h"

namespace nrec::avx512 {
namespace {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kMomentRows = 64;  // float sums are added to the double ones this often

/// Sixteen columns of a row.
struct Whole {
  static __m512 load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, __m512 v) { _mm512_storeu_ps(p, v); }
  static __m512 real(__m512 v) { return v; }
};

/// The last eight columns of a row that has no more: cheaper than a mask.
struct Half {
  static __m512 load(const float* p) { return _mm512_zextps256_ps512(_mm256_loadu_ps(p)); }
  static void store(float* p, __m512 v) { _mm256_storeu_ps(p, _mm512_castps512_ps256(v)); }
  static __m512 real(__m512 v) { return _mm512_zextps256_ps512(_mm512_castps512_ps256(v)); }
};

/// One of these with padding, which real() masks away.
template <class Lanes>
struct Padded : Lanes {
  __mmask16 lanes;
  __m512 real(__m512 v) const { return _mm512_maskz_mov_ps(lanes, v); }
};

/// step(c, lanes) over a row of `width` columns, the first `features` of them real.
template <class Step>
inline __attribute__((always_inline)) void for_columns(std::size_t width, std::size_t features,
                                                       const Step& step) {
  std::size_t c = 0;
  for (; c + kLanes <= features; c += kLanes) step(c, Whole());
  if (features == width) {
    if (c < width) step(c, Half());
    return;
  }
  const auto lanes = [&] { return first_lanes(c < features ? features - c : 0); };
  for (; c + kLanes <= width; c += kLanes) step(c, Padded<Whole>{{}, lanes()});
  if (c < width) step(c, Padded<Half>{{}, lanes()});
}

template <class Step>
inline __attribute__((always_inline)) void for_columns(std::size_t width, const Step& step) {
  for_columns(width, width, step);
}

void add_rows(const float* u, const std::uint32_t* index, const float* v, std::size_t rows, std::size_t width,
              float* out) {
  for (std::size_t r = 0; r < rows; ++r, out += width) {
    const float* row = u + index[r] * width;
    for_columns(width, [&](std::size_t c, const auto& lanes) {
      lanes.store(out + c, _mm512_add_ps(lanes.load(row + c), lanes.load(v + c)));
    });
  }
}

void affine_relu(const float* z, std::size_t rows, std::size_t width, const float* scale, const float* shift,
                 float* a) {
  const __m512 zero = _mm512_setzero_ps();
  for (std::size_t r = 0; r < rows; ++r, z += width, a += width) {
    for_columns(width, [&](std::size_t c, const auto& lanes) {
      const __m512 y = _mm512_fmadd_ps(lanes.load(scale + c), lanes.load(z + c), lanes.load(shift + c));
      lanes.store(a + c, _mm512_max_ps(y, zero));
    });
  }
}

inline __m512 masked(__m512 d, __m512 y) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(y, _mm512_setzero_ps(), _CMP_GT_OQ), d);
}

void affine_relu_backward(const float* z, std::size_t rows, std::size_t width, const float* scale,
                          const float* shift, float* d, float* dz) {
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t start = r * width;
    for_columns(width, [&](std::size_t c, const auto& lanes) {
      const __m512 s = lanes.load(scale + c);
      const __m512 y = _mm512_fmadd_ps(s, lanes.load(z + start + c), lanes.load(shift + c));
      const __m512 value = masked(lanes.load(d + start + c), y);
      lanes.store(d + start + c, value);
      if (dz) lanes.store(dz + start + c, _mm512_fmadd_ps(s, value, lanes.load(dz + start + c)));
    });
  }
}

/// out[0..7] += value, as doubles.
inline void add_half_to_doubles(double* out, __m256 value) {
  _mm512_storeu_pd(out, _mm512_add_pd(_mm512_loadu_pd(out), _mm512_cvtps_pd(value)));
}

inline __m256 low_half(__m512 v) { return _mm512_castps512_ps256(v); }
inline __m256 high_half(__m512 v) { return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1)); }

/// The columns of a row's width, whole or half a register.
inline void add_to_doubles(double* out, __m512 value, std::size_t columns) {
  add_half_to_doubles(out, low_half(value));
  if (columns >= kLanes) add_half_to_doubles(out + kLanes / 2, high_half(value));
}

void column_moments(const float* z, std::size_t rows, std::size_t width, const float* pivot, double* sum,
                    double* sum2) {
  for (std::size_t first = 0; first < rows; first += kMomentRows) {
    const std::size_t last = first + kMomentRows < rows ? first + kMomentRows : rows;
    for_columns(width, [&](std::size_t c, const auto& lanes) {
      const __m512 centre = lanes.load(pivot + c);
      __m512 s1 = _mm512_setzero_ps();
      __m512 s2 = _mm512_setzero_ps();
      for (std::size_t r = first; r < last; ++r) {
        const __m512 x = _mm512_sub_ps(lanes.load(z + r * width + c), centre);
        s1 = _mm512_add_ps(s1, x);
        s2 = _mm512_fmadd_ps(x, x, s2);
      }
      add_to_doubles(sum + c, s1, width - c);
      add_to_doubles(sum2 + c, s2, width - c);
    });
  }
}

void batch_norm_sums(const float* z, std::size_t rows, std::size_t width, const float* scale,
                     const float* shift, const float* mean, const float* d, float* out, double* sum1,
                     double* sum2) {
  for (std::size_t first = 0; first < rows; first += kMomentRows) {
    const std::size_t last = first + kMomentRows < rows ? first + kMomentRows : rows;
    for_columns(width, [&](std::size_t c, const auto& lanes) {
      const __m512 gain = lanes.load(scale + c);
      const __m512 offset = lanes.load(shift + c);
      const __m512 centre = lanes.load(mean + c);
      __m512 s1 = _mm512_setzero_ps();
      __m512 s2 = _mm512_setzero_ps();
      for (std::size_t r = first; r < last; ++r) {
        const __m512 x = lanes.load(z + r * width + c);
        const __m512 value = masked(lanes.load(d + r * width + c), _mm512_fmadd_ps(gain, x, offset));
        lanes.store(out + r * width + c, value);
        s1 = _mm512_add_ps(s1, value);
        s2 = _mm512_fmadd_ps(value, _mm512_sub_ps(x, centre), s2);
      }
      add_to_doubles(sum1 + c, s1, width - c);
      add_to_doubles(sum2 + c, s2, width - c);
    });
  }
}

void batch_norm_backward(const float* z, const float* d, std::size_t rows, std::size_t width, const float* c0,
                         const float* c1, const float* c2, const float* mean, bool accumulate, float* dz) {
  for (std::size_t r = 0; r < rows; ++r, z += width, d += width, dz += width) {
    for_columns(width, [&](std::size_t c, const auto& lanes) {
      const __m512 x = _mm512_sub_ps(lanes.load(z + c), lanes.load(mean + c));
      __m512 value = _mm512_fmadd_ps(lanes.load(c2 + c), x, lanes.load(c1 + c));
      value = _mm512_fmadd_ps(lanes.load(c0 + c), lanes.load(d + c), value);
      if (accumulate) value = _mm512_add_ps(value, lanes.load(dz + c));
      lanes.store(dz + c, value);
    });
  }
}

/// to[r] = the sum over the lanes of v[r], four registers at a time.
template <int R>
inline void lane_sums(const __m512 (&v)[R], float* to) {
#pragma GCC unroll 2
  for (int first = 0; first < R; first += 4) {
    __m256 halves[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) halves[r] = _mm256_add_ps(low_half(v[first + r]), high_half(v[first + r]));
    _mm_store_ps(to + first, horizontal_sums(halves));
  }
}

constexpr int kNormRows = 8;  // at once, so that few additions wait for the ones before
constexpr int kFewRows = 4;   // registers that lane_sums takes at once

/// kRows <= R rows.
template <int R, int kRows>
inline void layer_norm_moments_rows(const float* z, std::size_t width, std::size_t features, float eps,
                                    float* mean, float* rstd) {
  const float inverse_n = 1.0f / static_cast<float>(features);
  __m512 sums[R] = {};
  for_columns(width, features, [&](std::size_t c, const auto& lanes) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      sums[r] = _mm512_add_ps(sums[r], lanes.real(lanes.load(z + r * width + c)));
  });
  alignas(16) float centre[R];
  alignas(16) float inverse[R];
  lane_sums(sums, centre);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    centre[r] *= inverse_n;
    sums[r] = _mm512_setzero_ps();
  }
  for_columns(width, features, [&](std::size_t c, const auto& lanes) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 x = lanes.real(_mm512_sub_ps(lanes.load(z + r * width + c), _mm512_set1_ps(centre[r])));
      sums[r] = _mm512_fmadd_ps(x, x, sums[r]);
    }
  });
  lane_sums(sums, inverse);
#pragma GCC unroll 2
  for (int first = 0; first < R; first += 4) {
    const __m128 variance =
        _mm_fmadd_ps(_mm_load_ps(inverse + first), _mm_set1_ps(inverse_n), _mm_set1_ps(eps));
    _mm_store_ps(inverse + first, _mm_div_ps(_mm_set1_ps(1.0f), _mm_sqrt_ps(variance)));
  }
  for (int r = 0; r < kRows; ++r) {
    mean[r] = centre[r];
    rstd[r] = inverse[r];
  }
}

/// run<R, kRows>(first): rows eight, four or one at a time.
template <class Run>
inline void for_norm_rows(std::size_t rows, const Run& run) {
  std::size_t r = 0;
  for (; r + kNormRows <= rows; r += kNormRows) run.template operator()<kNormRows, kNormRows>(r);
  for (; r + kFewRows <= rows; r += kFewRows) run.template operator()<kFewRows, kFewRows>(r);
  for (; r < rows; ++r) run.template operator()<kFewRows, 1>(r);
}

void layer_norm_relu(const float* z, std::size_t rows, std::size_t width, std::size_t features,
                     const float* gain, const float* shift, const float* mean, const float* rstd, float* a) {
  for_norm_rows(rows, [&]<int R, int kRows>(std::size_t first) {
    for_columns(width, features, [&](std::size_t c, const auto& lanes) {
      const __m512 g = lanes.load(gain + c);
      const __m512 offset = lanes.load(shift + c);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const std::size_t row = first + static_cast<std::size_t>(r);
        const __m512 xhat =
            _mm512_mul_ps(_mm512_sub_ps(lanes.load(z + row * width + c), _mm512_set1_ps(mean[row])),
                          _mm512_set1_ps(rstd[row]));
        const __m512 y = _mm512_max_ps(_mm512_fmadd_ps(g, xhat, offset), _mm512_setzero_ps());
        lanes.store(a + row * width + c, lanes.real(y));
      }
    });
  });
}

/// kRows <= R rows, which share the loads and stores of dgain and dshift. kNormalised: z has xhat, and there is no mean.
template <int R, int kRows, bool kNormalised>
inline void layer_norm_backward_rows(const float* z, std::size_t width, std::size_t features,
                                     const float* gain, const float* shift, const float* mean,
                                     const float* rstd, float* d, bool accumulate, float* dz, float* dgain,
                                     float* dshift) {
  __m512 sum_d[R] = {};
  __m512 sum_dx[R] = {};
  for_columns(width, features, [&](std::size_t c, const auto& lanes) {
    const __m512 g = lanes.load(gain + c);
    const __m512 offset = lanes.load(shift + c);
    __m512 gains = lanes.load(dgain + c);
    __m512 shifts = lanes.load(dshift + c);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const std::size_t at = static_cast<std::size_t>(r) * width + c;
      __m512 xhat = lanes.load(z + at);
      if constexpr (kNormalised)
        xhat = lanes.real(xhat);  // 0 times what is in padding columns must be 0
      else
        xhat = _mm512_mul_ps(_mm512_sub_ps(xhat, _mm512_set1_ps(mean[r])), _mm512_set1_ps(rstd[r]));
      const __m512 value = lanes.real(masked(lanes.load(d + at), _mm512_fmadd_ps(g, xhat, offset)));
      gains = _mm512_fmadd_ps(value, xhat, gains);
      shifts = _mm512_add_ps(value, shifts);
      const __m512 scaled = _mm512_mul_ps(g, value);
      lanes.store(d + at, scaled);
      sum_d[r] = _mm512_add_ps(sum_d[r], scaled);
      sum_dx[r] = _mm512_fmadd_ps(scaled, xhat, sum_dx[r]);
    }
    lanes.store(dgain + c, gains);
    lanes.store(dshift + c, shifts);
  });
  const float inverse_n = 1.0f / static_cast<float>(features);
  alignas(16) float total_d[R];
  alignas(16) float total_dx[R];
  lane_sums(sum_d, total_d);
  lane_sums(sum_dx, total_dx);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const LayerNormTerms terms = layer_norm_terms(total_d[r], total_dx[r], inverse_n, rstd[r], kNormalised);
    const __m512 centre = kNormalised ? _mm512_setzero_ps() : _mm512_set1_ps(mean[r]);
    const __m512 inverse = _mm512_set1_ps(rstd[r]);
    const __m512 constant = _mm512_set1_ps(terms.constant);
    const __m512 slope = _mm512_set1_ps(terms.slope);
    const std::size_t row = static_cast<std::size_t>(r) * width;
    for_columns(width, features, [&](std::size_t c, const auto& lanes) {
      __m512 x = lanes.load(z + row + c);
      if constexpr (!kNormalised) x = _mm512_sub_ps(x, centre);
      __m512 value = _mm512_fmadd_ps(inverse, lanes.load(d + row + c), constant);
      value = lanes.real(_mm512_fmadd_ps(slope, x, value));
      if (accumulate) value = _mm512_add_ps(value, lanes.load(dz + row + c));
      lanes.store(dz + row + c, value);
    });
  }
}

void layer_norm_relu_backward(const float* z, std::size_t rows, std::size_t width, std::size_t features,
                              const float* gain, const float* shift, const float* mean, const float* rstd,
                              float* d, bool accumulate, float* dz, float* dgain, float* dshift) {
  const auto run = [&]<bool kNormalised>() {
    for_norm_rows(rows, [&]<int R, int kRows>(std::size_t r) {
      layer_norm_backward_rows<R, kRows, kNormalised>(
          z + r * width, width, features, gain, shift, kNormalised ? nullptr : mean + r, rstd + r,
          d + r * width, accumulate, dz + r * width, dgain, dshift);
    });
  };
  mean ? run.template operator()<false>() : run.template operator()<true>();
}

void row_dots(const float* z, std::size_t rows, std::size_t width, const float* w, float bias, float* out) {
  for (std::size_t r = 0; r < rows; ++r, z += width) {
    __m512 sum = _mm512_setzero_ps();
    for_columns(width, [&](std::size_t c, const auto& lanes) {
      sum = _mm512_fmadd_ps(lanes.load(z + c), lanes.load(w + c), sum);
    });
    out[r] = horizontal_sum(_mm256_add_ps(low_half(sum), high_half(sum))) + bias;
  }
}

void row_dots_backward(const float* z, const float* d, std::size_t rows, std::size_t width, const float* w,
                       float* dz, float* dw) {
  for_columns(width, [&](std::size_t c, const auto& lanes) {
    const __m512 weights = lanes.load(w + c);
    __m512 sum = lanes.load(dw + c);
    for (std::size_t r = 0; r < rows; ++r) {
      const __m512 value = _mm512_set1_ps(d[r]);
      sum = _mm512_fmadd_ps(value, lanes.load(z + r * width + c), sum);
      lanes.store(dz + r * width + c, _mm512_mul_ps(value, weights));
    }
    lanes.store(dw + c, sum);
  });
}

void column_sums(const float* d, std::size_t rows, std::size_t width, float* out) {
  for_columns(width, [&](std::size_t c, const auto& lanes) {
    __m512 sum = _mm512_setzero_ps();
    for (std::size_t r = 0; r < rows; ++r) sum = _mm512_add_ps(sum, lanes.load(d + r * width + c));
    lanes.store(out + c, _mm512_add_ps(sum, lanes.load(out + c)));
  });
}

PairKernels make_table() {
  PairKernels table = avx2::pair_kernels_table();
  table.name = "avx512";
  table.inputs.gemm = gemm;
  table.inputs.gemm_weights = gemm_weights;
  table.hidden = table.inputs;
  table.add_rows = add_rows;
  table.affine_relu = affine_relu;
  table.affine_relu_backward = affine_relu_backward;
  table.column_moments = column_moments;
  table.batch_norm_sums = batch_norm_sums;
  table.batch_norm_backward = batch_norm_backward;
  table.layer_norm_moments = layer_norm_moments;
  table.layer_norm_relu = layer_norm_relu;
  table.layer_norm_relu_backward = layer_norm_relu_backward;
  table.row_dots = row_dots;
  table.row_dots_backward = row_dots_backward;
  table.column_sums = column_sums;
  return table;
}

}  // namespace

void layer_norm_moments(const float* z, std::size_t rows, std::size_t width, std::size_t features, float eps,
                        float* mean, float* rstd) {
  for_norm_rows(rows, [&]<int R, int kRows>(std::size_t r) {
    layer_norm_moments_rows<R, kRows>(z + r * width, width, features, eps, mean + r, rstd + r);
  });
}

const PairKernels& pair_kernels_table() {
  static const PairKernels table = make_table();
  return table;
}

}  // namespace nrec::avx512
