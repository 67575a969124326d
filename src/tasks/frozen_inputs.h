#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nrec/core/array.h"

// Random constants that the benchmark drew once, regenerated from std::mt19937(42) instead of being read from files.
namespace nrec::tasks {

inline constexpr std::size_t kGlmBins = 100;
inline constexpr std::size_t kGlmTaps = 9;
inline constexpr std::size_t kGlmParameters = 1 + kGlmTaps;

// The stimulus of bernoulli_glm and what follows from it.
struct GlmDesign {
  std::array<double, kGlmBins> stimulus;  // white noise, rounded to float as in the benchmark
  Matrix<double> design;                  // [100, 10]: ones, then the stimulus delayed by 0..8 bins
  Matrix<double> prior_precision;         // [10, 10]: 0.5 for the offset, F^T F for the filter
};
const GlmDesign& glm_design();

inline constexpr std::size_t kSlcpSignal = 8;
inline constexpr std::size_t kSlcpNoise = 92;
inline constexpr std::size_t kNoiseComponents = 20;
inline constexpr std::size_t kTriangle = kSlcpNoise * (kSlcpNoise + 1) / 2;

// The noise of slcp_distractors: an equal mixture of 20 multivariate t distributions with 2 degrees of freedom.
struct DistractorNoise {
  Matrix<double> location;  // [20, 92]
  Matrix<double> factor;    // [20, 4278]: lower triangles, row by row; diagonal entries may be negative
  std::array<std::uint32_t, kSlcpSignal + kSlcpNoise> permutation;  // x[j] = (signal, noise)[permutation[j]]
};
const DistractorNoise& distractor_noise();

}  // namespace nrec::tasks
