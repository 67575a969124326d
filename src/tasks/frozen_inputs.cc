#include "frozen_inputs.h"

#include <cmath>
#include <random>
#include <span>
#include <utility>

namespace nrec::tasks {
namespace {

constexpr std::uint32_t kSeed = 42;

// The generator the constants were drawn with: 53-bit uniforms and polar normals over MT19937, second coordinate first.
class LegacyRandom {
 public:
  explicit LegacyRandom(std::uint32_t seed) : engine_(seed) {}

  double uniform() {
    const auto high = static_cast<double>(engine_() >> 5);
    const auto low = static_cast<double>(engine_() >> 6);
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    double p = 0.0;
    double q = 0.0;
    double square = 0.0;
    do {
      p = 2.0 * uniform() - 1.0;
      q = 2.0 * uniform() - 1.0;
      square = p * p + q * q;
    } while (square >= 1.0 || square == 0.0);
    const double scale = std::sqrt(-2.0 * std::log(square) / square);
    spare_ = scale * p;
    has_spare_ = true;
    return scale * q;
  }

  // Uniform in 0 .. most, by masking and rejection.
  std::uint32_t integer(std::uint32_t most) {
    if (most == 0) return 0;
    std::uint32_t mask = most;
    for (const int shift : {1, 2, 4, 8, 16}) mask |= mask >> shift;
    std::uint32_t value = 0;
    do {
      value = static_cast<std::uint32_t>(engine_()) & mask;
    } while (value > most);
    return value;
  }

  void shuffle(std::span<std::uint32_t> values) {
    for (auto i = static_cast<std::uint32_t>(values.size()) - 1; i >= 1; --i)
      std::swap(values[i], values[integer(i)]);
  }

 private:
  std::mt19937 engine_;
  bool has_spare_ = false;
  double spare_ = 0.0;
};

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
  LegacyRandom random(kSeed);
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
  LegacyRandom random(kSeed);
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
