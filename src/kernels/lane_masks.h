#pragma once

#include <immintrin.h>

#include <cstddef>

namespace nrec {
namespace {  // every file that includes this has its own, compiled with its own flags

#if defined(__AVX512F__)
/// The first `count` of sixteen lanes.
inline __mmask16 first_lanes(std::size_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffffU : (1U << count) - 1U);
}
#else
/// All bits of the first `count` of eight lanes.
inline __m256i first_lanes(std::size_t count) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count < 8 ? static_cast<int>(count) : 8), lane);
}
#endif

}  // namespace
}  // namespace nrec
