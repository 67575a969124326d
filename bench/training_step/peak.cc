#include "peak.h"

#include <cstdint>

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

constexpr int kTileRounds = 100'000;
constexpr double kTileFlops = 4.0 * 2.0 * 16 * 16 * 32 * static_cast<double>(kTileRounds);

/// Four products of tiles a round, as many as there are tiles of sums beside two of either operand.
__attribute__((target("amx-tile,amx-bf16"))) float amx_burst() {
  struct alignas(64) {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } configuration;
  float sums[16 * 16];
  // The compiler's tile instructions do not tell it that they read and write memory.
  __asm__ volatile("" : : "r"(&configuration), "r"(sums) : "memory");
  _tile_loadconfig(&configuration);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int round = 0; round < kTileRounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, 64);
  _tile_release();
  __asm__ volatile("" : : : "memory");
  return sums[0];
}
#endif

}  // namespace

std::vector<double> peak_bursts_gflops(std::string_view isa, ThreadPool& pool) {
  std::vector<double> rates;
#if defined(__x86_64__)
  const bool has_tiles = isa == "amx", is_wide = isa == "avx512";
  if (!has_tiles && !is_wide && !isa.starts_with("avx2")) return rates;
  const double flops = has_tiles ? kTileFlops : kLaneFlops * (is_wide ? 16.0 : 8.0);
  float (*run)() = has_tiles ? amx_burst : is_wide ? avx512_burst : avx2_burst;
  volatile float sink = 0.0f;
  for (int burst = 0; burst < kBursts; ++burst) {
    const Stopwatch watch;
    const auto tasks = static_cast<std::size_t>(pool.num_threads());
    pool.run(tasks, [&](std::size_t, int) { sink = run(); });
    rates.push_back(flops * static_cast<double>(tasks) / watch.seconds() * 1e-9);
  }
#endif
  return rates;
}

}  // namespace nrec::bench
