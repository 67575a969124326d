#include <algorithm>
#include <array>
#include <cmath>

#include "catalogue.h"
#include "frozen_inputs.h"
#include "slcp_signal.h"

namespace nrec::tasks {
namespace {

constexpr std::size_t kColumns = kSlcpSignal + kSlcpNoise;
// Degrees of freedom of the t distributions; a chi-square of two is -2 log U.
constexpr double kDegrees = 2.0;

void draw_noise(RandomStream& random, std::span<double> noise) {
  const DistractorNoise& constants = distractor_noise();
  const std::size_t component = random.integer(kNoiseComponents);
  std::array<double, kSlcpNoise> g;
  for (double& value : g) value = random.normal();
  const double chi_square = -2.0 * std::log(random.uniform());
  const double stretch = 1.0 / std::sqrt(chi_square / kDegrees);
  const double* factor = constants.factor.row(component).data();
  for (std::size_t i = 0; i < kSlcpNoise; ++i) {
    double sum = 0.0;
    for (std::size_t j = 0; j <= i; ++j) sum += *factor++ * g[j];
    noise[i] = constants.location(component, i) + stretch * sum;
  }
}

void simulate(std::span<const double> theta, RandomStream& random, std::span<double> x) {
  std::array<double, kColumns> values;
  simulate_slcp_signal(theta, random, std::span(values).first(kSlcpSignal));
  draw_noise(random, std::span(values).last(kSlcpNoise));
  const auto& permutation = distractor_noise().permutation;
  for (std::size_t j = 0; j < kColumns; ++j) x[j] = values[permutation[j]];
}

// Log density of one multivariate t with location loc and scale factor L, by forward substitution.
double log_component(std::span<const double> noise, std::span<const double> location, const double* factor) {
  std::array<double, kSlcpNoise> z;
  double square = 0.0;
  double log_determinant = 0.0;
  for (std::size_t i = 0; i < kSlcpNoise; ++i) {
    double rest = noise[i] - location[i];
    for (std::size_t j = 0; j < i; ++j) rest -= *factor++ * z[j];
    const double diagonal = *factor++;
    z[i] = rest / diagonal;
    square += z[i] * z[i];
    log_determinant += std::log(std::abs(diagonal));
  }
  constexpr double kDim = kSlcpNoise;
  // Gamma((2 + 92)/2) / Gamma(1) / (2 pi)^46; log 46! as a sum, because lgamma is not thread-safe everywhere.
  double log_gamma = 0.0;
  for (int k = 2; k < static_cast<int>((kDegrees + kDim) / 2.0); ++k)
    log_gamma += std::log(static_cast<double>(k));
  return log_gamma - 0.5 * kDim * kLogTwoPi - log_determinant -
         0.5 * (kDegrees + kDim) * std::log1p(square / kDegrees);
}

// Log density of the 92 noise columns, which do not know theta.
double noise_log_density(std::span<const double> noise) {
  const DistractorNoise& constants = distractor_noise();
  std::array<double, kNoiseComponents> terms;
  for (std::size_t c = 0; c < kNoiseComponents; ++c) {
    terms[c] = log_component(noise, constants.location.row(c), constants.factor.row(c).data());
  }
  const double highest = *std::max_element(terms.begin(), terms.end());
  double sum = 0.0;
  for (const double term : terms) sum += std::exp(term - highest);
  return highest + std::log(sum / static_cast<double>(kNoiseComponents));
}

class SlcpDistractors final : public Task {
 public:
  SlcpDistractors()
      : Task("slcp_distractors", slcp_prior(),
             std::make_unique<FunctionSimulator>("slcp_distractors", kSlcpParameters, kColumns, simulate)) {
    distractor_noise();  // made now, not inside the first simulated row
  }

 private:
  void evaluate_log_likelihood(MatrixView<const double> theta, std::span<const double> x_o,
                               std::span<double> log_likelihood) const override {
    std::array<double, kColumns> values;
    const auto& permutation = distractor_noise().permutation;
    for (std::size_t j = 0; j < kColumns; ++j) values[permutation[j]] = x_o[j];
    const auto all = std::span<const double>(values);
    slcp_signal_log_likelihood(theta, all.first(kSlcpSignal), log_likelihood);
    const double constant = noise_log_density(all.last(kSlcpNoise));
    for (double& value : log_likelihood) value += constant;
  }
};

}  // namespace

std::unique_ptr<Task> make_slcp_distractors(const TaskOptions&) {
  return std::make_unique<SlcpDistractors>();
}

}  // namespace nrec::tasks
