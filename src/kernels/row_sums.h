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

/// Sums of each kDepths (2, 4, 8 or 16) neighbours of sixteen numbers, in the first lanes; zeros behind them.
template <int kDepths>
static inline __m256 neighbour_sums(__m256 low, __m256 high) {
  const __m256 twos = _mm256_hadd_ps(low, high);  // 0-3 of low, of high, 4-7 of low, of high
  if constexpr (kDepths == 2)
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(twos), _MM_SHUFFLE(3, 1, 2, 0)));
  const __m256 fours = _mm256_hadd_ps(twos, _mm256_setzero_ps());  // low, high, 0, 0 of either half
  if constexpr (kDepths == 4)
    return _mm256_permutevar8x32_ps(fours, _mm256_setr_epi32(0, 4, 1, 5, 2, 2, 2, 2));
  const __m128 eights = _mm_add_ps(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1));
  if constexpr (kDepths == 8) return _mm256_zextps128_ps256(eights);
  return _mm256_zextps128_ps256(_mm_hadd_ps(eights, _mm_setzero_ps()));
}

/// The way back of layer norm for one row: dz = d / sd + constant + slope x, from the sums of d and of d xhat; x is z - mean, or xhat.
struct LayerNormTerms {
  float constant, slope;
};
static inline LayerNormTerms layer_norm_terms(float sum_d, float sum_dx, float inverse_n, float rstd,
                                              bool of_xhat) {
  const float slope = -(sum_dx * inverse_n) * rstd;
  return {-(sum_d * inverse_n) * rstd, of_xhat ? slope : slope * rstd};
}

}  // namespace nrec
