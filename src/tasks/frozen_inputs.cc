#include "frozen_inputs.h"

#include <cmath>

#include "core/mt19937_stream.h"

namespace nrec::tasks {
namespace {

constexpr std::uint32_t kSeed = 42;

// Second differences plus a growing ridge: smooth filters, less so at long delays.
Matrix<double> filter_precision() {
  Matrix<double> difference(kGlmTaps, kGlmTaps);
  for (std::size_t i = 0; i < kGlmTaps; ++i) {
    difference(i, i) = 1.0;
    if (i > 0) difference(i, i - 1) = -1.0;
  }
  const auto product = [](const Matrix<double>& a, const Matrix<double>& b, bool transpose_a) {
    Matrix<double> c(kGlmTaps, kGlmTaps);
    for (std::size_t i = 0; i < kGlmTaps; ++i) {
      for (std::size_t j = 0; j < kGlmTaps; ++j) {
        for (std::size_t k = 0; k < kGlmTaps; ++k) c(i, j) += (transpose_a ? a(k, i) : a(i, k)) * b(k, j);
      }
    }
    return c;
  };
  Matrix<double> f = product(difference, difference, false);
  for (std::size_t k = 0; k < kGlmTaps; ++k)
    f(k, k) += std::sqrt(static_cast<double>(k) / static_cast<double>(kGlmTaps));
  return product(f, f, true);
}

GlmDesign make_glm_design() {
  constexpr double kOffsetPrecision = 0.5;
  GlmDesign glm{{}, Matrix<double>(kGlmBins, kGlmParameters), Matrix<double>(kGlmParameters, kGlmParameters)};
  Mt19937Stream random(kSeed);
  for (double& value : glm.stimulus) value = static_cast<double>(static_cast<float>(random.normal()));
  for (std::size_t t = 0; t < kGlmBins; ++t) {
    glm.design(t, 0) = 1.0;
    for (std::size_t lag = 0; lag < kGlmTaps && lag <= t; ++lag)
      glm.design(t, 1 + lag) = glm.stimulus[t - lag];
  }
  glm.prior_precision(0, 0) = kOffsetPrecision;
  const Matrix<double> filter = filter_precision();
  for (std::size_t i = 0; i < kGlmTaps; ++i) {
    for (std::size_t j = 0; j < kGlmTaps; ++j) glm.prior_precision(1 + i, 1 + j) = filter(i, j);
  }
  return glm;
}

DistractorNoise make_distractor_noise() {
  constexpr double kLocationSpread = 15.0;
  constexpr double kScale = 3.0;
  DistractorNoise noise{
      Matrix<double>(kNoiseComponents, kSlcpNoise), Matrix<double>(kNoiseComponents, kTriangle), {}};
  Mt19937Stream random(kSeed);
  for (double& value : noise.location.values()) value = kLocationSpread * random.normal();
  for (std::size_t c = 0; c < kNoiseComponents; ++c) {
    double* factor = noise.factor.row(c).data();
    for (std::size_t i = 0; i < kSlcpNoise; ++i) {
      for (std::size_t j = 0; j < kSlcpNoise; ++j) {
        const double value = random.normal();  // the upper triangle is drawn too, and thrown away
        if (j <= i) factor[i * (i + 1) / 2 + j] = value;
      }
    }
    for (std::size_t i = 0; i < kSlcpNoise; ++i) factor[i * (i + 1) / 2 + i] += std::exp(random.normal());
    for (std::size_t k = 0; k < kTriangle; ++k) factor[k] *= kScale;
  }
  for (std::size_t j = 0; j < noise.permutation.size(); ++j)
    noise.permutation[j] = static_cast<std::uint32_t>(j);
  random.shuffle(noise.permutation);
  return noise;
}

}  // namespace

const GlmDesign& glm_design() {
  static const GlmDesign glm = make_glm_design();
  return glm;
}

const DistractorNoise& distractor_noise() {
  static const DistractorNoise noise = make_distractor_noise();
  return noise;
}

}  // namespace nrec::tasks
