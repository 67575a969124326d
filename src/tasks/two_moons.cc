#include <cmath>
#include <numbers>

#include "catalogue.h"
#include "nrec/core/error.h"

namespace nrec::tasks {
namespace {

constexpr std::size_t kDim = 2;
constexpr double kBox = 1.0;         // half width of the uniform prior
constexpr double kRadiusMean = 0.1;  // of the crescent
constexpr double kRadiusSd = 0.01;
constexpr double kCentre = 0.25;  // first coordinate of the crescent's centre
constexpr double kHalfPi = 0.5 * std::numbers::pi;
constexpr double kInvSqrt2 = 0.5 * std::numbers::sqrt2;
// A reference draw is accepted with probability near 1 for data of this model; far more tries mean impossible data.
constexpr int kMostTries = 1'000'000;

struct Point {
  double first;
  double second;
};

// A point of the crescent: radius ~ N(0.1, 0.01^2), angle uniform on the right half circle.
Point draw_crescent(RandomStream& random) {
  const double angle = random.uniform(-kHalfPi, kHalfPi);
  const double radius = kRadiusMean + kRadiusSd * random.normal();
  return {radius * std::cos(angle) + kCentre, radius * std::sin(angle)};
}

void simulate(std::span<const double> theta, RandomStream& random, std::span<double> x) {
  const Point p = draw_crescent(random);
  x[0] = p.first - std::abs(theta[0] + theta[1]) * kInvSqrt2;
  x[1] = p.second + (theta[1] - theta[0]) * kInvSqrt2;
}

class TwoMoons final : public Task {
 public:
  // The benchmark samples this task with hard walls: theta is its own unbounded coordinate.
  TwoMoons()
      : Task("two_moons", uniform_box(kDim, -kBox, kBox, "identity"),
             std::make_unique<FunctionSimulator>("two_moons", kDim, kDim, simulate)) {}
  bool has_reference_posterior() const override { return true; }

 private:
  void evaluate_log_likelihood(MatrixView<const double> theta, std::span<const double> x_o,
                               std::span<double> log_likelihood) const override {
    const double log_normaliser = std::log(kRadiusSd) + kHalfLogTwoPi + std::log(std::numbers::pi);
    for (std::size_t i = 0; i < theta.rows; ++i) {
      const double u = x_o[0] + std::abs(theta(i, 0) + theta(i, 1)) * kInvSqrt2 - kCentre;
      const double v = x_o[1] - (theta(i, 1) - theta(i, 0)) * kInvSqrt2;
      const double rho = std::hypot(u, v);
      const double z = (rho - kRadiusMean) / kRadiusSd;
      log_likelihood[i] = u >= 0.0 ? -0.5 * z * z - std::log(rho) - log_normaliser : kMinusInfinity;
    }
  }

  // Both crescents of the posterior are images of p -> theta with p drawn as in the simulator; the map keeps area.
  void draw_reference(std::span<const double> x_o, RandomStream& random,
                      std::span<double> theta) const override {
    for (int attempt = 0; attempt < kMostTries; ++attempt) {
      const Point p = draw_crescent(random);
      double h = p.first - x_o[0];  // |theta1 + theta2| / sqrt2
      const double k = x_o[1] - p.second;
      if (random.uniform() < 0.5) h = -h;
      theta[0] = (h - k) * kInvSqrt2;
      theta[1] = (h + k) * kInvSqrt2;
      if (p.first >= x_o[0] && std::abs(theta[0]) <= kBox && std::abs(theta[1]) <= kBox) return;
    }
    throw DomainError("task two_moons: no theta of the prior's box was found for x_o = (" +
                      std::to_string(x_o[0]) + ", " + std::to_string(x_o[1]) + ") in " +
                      std::to_string(kMostTries) + " tries; give an observation that the simulator can make");
  }
};

}  // namespace

std::unique_ptr<Task> make_two_moons(const TaskOptions&) { return std::make_unique<TwoMoons>(); }

}  // namespace nrec::tasks
