// Compiled with -mavx2 -mfma; run only where the processor has both.
#include <immintrin.h>

#include "kernels/gaussian_kernel.h"

/// exp of four numbers, by the C library: glibc's libmvec under its name in the vector ABI of x86-64.
extern "C" __m256d _ZGVdN4v_exp(__m256d);

namespace nrec::avx2 {

namespace {

constexpr std::size_t kLanes = 4;

/// `Load` is given the start of a column at the four points.
template <class Load>
__m256d kernel_of_four(const double* row, const double* start, const PointColumns& points, __m256d factor,
                       const Load& load) {
  __m256d distance = _mm256_setzero_pd();
  for (std::size_t k = 0; k < points.dims; ++k) {
    const __m256d difference = _mm256_sub_pd(_mm256_set1_pd(row[k]), load(start + k * points.stride));
    distance = _mm256_fmadd_pd(difference, difference, distance);
  }
  return _ZGVdN4v_exp(_mm256_mul_pd(factor, distance));
}

}  // namespace

double gaussian_kernel_sum(const double* row, const PointColumns& points, double factor) {
  const __m256d minus_factor = _mm256_set1_pd(-factor);
  __m256d sums = _mm256_setzero_pd();
  std::size_t j = 0;
  for (; j + kLanes <= points.count; j += kLanes) {
    sums = _mm256_add_pd(sums, kernel_of_four(row, points.start + j, points, minus_factor,
                                              [](const double* from) { return _mm256_loadu_pd(from); }));
  }
  if (j < points.count) {
    const auto left = static_cast<long long>(points.count - j);
    const __m256i here = _mm256_cmpgt_epi64(_mm256_set1_epi64x(left), _mm256_set_epi64x(3, 2, 1, 0));
    const __m256d last = kernel_of_four(row, points.start + j, points, minus_factor,
                                        [&](const double* from) { return _mm256_maskload_pd(from, here); });
    sums = _mm256_add_pd(sums, _mm256_and_pd(last, _mm256_castsi256_pd(here)));
  }
  double parts[kLanes];
  _mm256_storeu_pd(parts, sums);
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

}  // namespace nrec::avx2
