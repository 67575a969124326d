#include "peak.h"

#include "nrec/core/stop.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace nrec::bench {

namespace {

constexpr int kBursts = 7;
constexpr int kRounds = 4'000'000;  // some 10 ms
constexpr int kChains = 12;         // more than latency times ports, fewer than registers

#if defined(__x86_64__)
/// One burst on one thread; the result keeps the compiler from leaving it out.
__attribute__((target("avx2,fma"))) float avx2_burst() {
  __m256 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_set1_ps(1.0f + 0.01f * static_cast<float>(i));
  const __m256 factor = _mm256_set1_ps(0.999999f), term = _mm256_set1_ps(1e-6f);
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
  }
  float total = 0.0f;
  for (int i = 0; i < kChains; ++i) total += _mm256_cvtss_f32(sums[i]);
  return total;
}
/// The same with vectors of sixteen.
__attribute__((target("avx512f"))) float avx512_burst() {
  __m512 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(1.0f + 0.01f * static_cast<float>(i));
  const __m512 factor = _mm512_set1_ps(0.999999f), term = _mm512_set1_ps(1e-6f);
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_fmadd_ps(sums[i], factor, term);
  }
  float total = 0.0f;
  for (int i = 0; i < kChains; ++i) total += _mm512_cvtss_f32(sums[i]);
  return total;
}
/// Of one lane in one burst.
constexpr double kLaneFlops = 2.0 * kChains * static_cast<double>(kRounds);
#endif

}  // namespace

std::vector<double> fma_bursts_gflops(std::string_view isa, ThreadPool& pool) {
  std::vector<double> rates;
#if defined(__x86_64__)
  if (isa != "avx2" && isa != "avx512") return rates;
  const bool is_wide = isa == "avx512";
  const double flops = kLaneFlops * (is_wide ? 16.0 : 8.0);
  volatile float sink = 0.0f;
  for (int burst = 0; burst < kBursts; ++burst) {
    const Stopwatch watch;
    const auto tasks = static_cast<std::size_t>(pool.num_threads());
    pool.run(tasks, [&](std::size_t, int) { sink = is_wide ? avx512_burst() : avx2_burst(); });
    rates.push_back(flops * static_cast<double>(tasks) / watch.seconds() * 1e-9);
  }
#endif
  return rates;
}

}  // namespace nrec::bench
