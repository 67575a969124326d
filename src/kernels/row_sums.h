#pragma once

#include <immintrin.h>

namespace nrec {

// Sums over the lanes of registers, in one order for AVX2 and AVX-512. Static: every file that includes them has its own, compiled with its
// own flags.

/// Lane r holds the sum of v[r].
static inline __m128 horizontal_sums(const __m256 (&v)[4]) {
  const __m256 pairs = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
  return _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1));
}

static inline float horizontal_sum(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  s = _mm_add_ss(s, _mm_movehdup_ps(s));
  return _mm_cvtss_f32(s);
}

/// The way back of layer norm for one row: dz = d / sd + constant + slope (z - mean), from the sums of d and of d xhat.
struct LayerNormTerms {
  float constant, slope;
};
static inline LayerNormTerms layer_norm_terms(float sum_d, float sum_dx, float inverse_n, float rstd) {
  return {-(sum_d * inverse_n) * rstd, -(sum_dx * inverse_n) * rstd * rstd};
}

}  // namespace nrec
