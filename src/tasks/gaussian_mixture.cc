#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "catalogue.h"
#include "nrec/core/error.h"
#include "truncated_normal.h"

namespace nrec::tasks {
namespace {

constexpr std::size_t kDim = 2;
constexpr double kBox = 10.0;  // half width of the uniform prior
constexpr double kWideSd = 1.0;
constexpr double kNarrowSd = 0.1;  // an sd: the variance is 0.01

// The fair coin of one row, or of everything when the published defect is asked for.
double draw_sd(RandomStream& random) { return random.uniform() < 0.5 ? kWideSd : kNarrowSd; }

std::unique_ptr<const Simulator> make_simulator(const TaskOptions& options) {
  std::optional<double> common_sd;
  if (options.component_per_call) {
    // The last row number there is: no simulated row shares its numbers.
    RandomStream coin(options.component_seed, Stream::simulator, std::numeric_limits<std::uint64_t>::max());
    common_sd = draw_sd(coin);
  }
  return std::make_unique<FunctionSimulator>(
      "gaussian_mixture", kDim, kDim,
      [common_sd](std::span<const double> theta, RandomStream& random, std::span<double> x) {
        const double row_sd = draw_sd(random);
        const double sd = common_sd.value_or(row_sd);
        for (std::size_t d = 0; d < kDim; ++d) x[d] = theta[d] + sd * random.normal();
      });
}

double log_component(double square, double sd) {
  return -0.5 * square / (sd * sd) - static_cast<double>(kDim) * (std::log(sd) + kHalfLogTwoPi);
}

class GaussianMixture final : public Task {
 public:
  explicit GaussianMixture(const TaskOptions& options)
      : Task("gaussian_mixture", uniform_box(kDim, -kBox, kBox), make_simulator(options)) {}
  bool has_reference_posterior() const override { return true; }

 private:
  void evaluate_log_likelihood(MatrixView<const double> theta, std::span<const double> x_o,
                               std::span<double> log_likelihood) const override {
    for (std::size_t i = 0; i < theta.rows; ++i) {
      double square = 0.0;
      for (std::size_t d = 0; d < kDim; ++d) square += (x_o[d] - theta(i, d)) * (x_o[d] - theta(i, d));
      const double wide = log_component(square, kWideSd);
      const double narrow = log_component(square, kNarrowSd);
      log_likelihood[i] =
          std::max(wide, narrow) + std::log1p(std::exp(-std::abs(wide - narrow))) + std::log(0.5);
    }
  }

  // A component, weighted with the part of it that lies in the box, then truncated normals; the same law as drawing
  // (coin, normal) until the draw falls into the box.
  void draw_reference(std::span<const double> x_o, RandomStream& random,
                      std::span<double> theta) const override {
    double wide = 1.0;
    double narrow = 1.0;
    for (std::size_t d = 0; d < kDim; ++d) {
      wide *= normal_interval_probability(x_o[d], kWideSd, -kBox, kBox);
      narrow *= normal_interval_probability(x_o[d], kNarrowSd, -kBox, kBox);
    }
    if (!(wide > 0.0)) {
      throw DomainError(
          "task gaussian_mixture: x_o = (" + std::to_string(x_o[0]) + ", " + std::to_string(x_o[1]) +
          ") is too far outside the prior's box [-10, 10]; give an observation that the simulator can make");
    }
    const double sd = random.uniform() * (wide + narrow) < wide ? kWideSd : kNarrowSd;
    for (std::size_t d = 0; d < kDim; ++d) theta[d] = draw_truncated_normal(x_o[d], sd, -kBox, kBox, random);
  }
};

}  // namespace

std::unique_ptr<Task> make_gaussian_mixture(const TaskOptions& options) {
  return std::make_unique<GaussianMixture>(options);
}

}  // namespace nrec::tasks
