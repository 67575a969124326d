#include <algorithm>
#include <array>
#include <cmath>

#include "catalogue.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "population_curves.h"

namespace nrec::tasks {
namespace {

constexpr std::size_t kParameters = 4;
constexpr std::size_t kData = 2 * kCurvePoints;  // ten counts of prey, then ten of predators
constexpr double kNoise = 0.1;                   // sd of the logarithm
constexpr double kLowest = 1e-10;                // populations are clamped to this interval before the noise
constexpr double kHighest = 1e4;

// Location of the log-normal noise.
double location(double log_population) {
  static const double lowest = std::log(kLowest);
  static const double highest = std::log(kHighest);
  return std::clamp(log_population, lowest, highest);
}

void simulate(std::span<const double> theta, RandomStream& random, std::span<double> x) {
  std::array<double, kData> log_populations;
  if (!solve_lotka_volterra(theta, log_populations)) {
    std::fill(x.begin(), x.end(), std::nan(""));
    return;
  }
  for (std::size_t k = 0; k < kData; ++k)
    x[k] = std::exp(location(log_populations[k]) + kNoise * random.normal());
}

Prior lotka_volterra_prior() {
  const auto rate = [](const char* name, double log_location) {
    return PriorTerm{{name}, "log_normal", {{"location", {log_location}}, {"scale", {0.5}}}};
  };
  return Prior::from_terms(
      {rate("alpha", -0.125), rate("beta", -3.0), rate("gamma", -0.125), rate("delta", -3.0)});
}

double log_density(std::span<const double> x, const std::array<double, kData>& log_populations) {
  double sum = 0.0;
  for (std::size_t k = 0; k < kData; ++k) {
    const double log_x = std::log(x[k]);
    const double z = (log_x - location(log_populations[k])) / kNoise;
    sum -= 0.5 * z * z + log_x + std::log(kNoise) + kHalfLogTwoPi;
  }
  return sum;
}

class LotkaVolterra final : public Task {
 public:
  LotkaVolterra()
      : Task("lotka_volterra", lotka_volterra_prior(),
             std::make_unique<FunctionSimulator>("lotka_volterra", kParameters, kData, simulate)) {}

 private:
  void check_observation(std::span<const double> x_o) const override {
    for (std::size_t k = 0; k < x_o.size(); ++k) {
      if (x_o[k] > 0.0) continue;
      throw DomainError("task lotka_volterra: x_o column " + std::to_string(k + 1) + " = " +
                        number_text(x_o[k]) + " is not > 0; give ten prey, then ten predator populations");
    }
  }
  void evaluate_log_likelihood(MatrixView<const double> theta, std::span<const double> x_o,
                               std::span<double> log_likelihood) const override {
    std::array<double, kData> log_populations;
    for (std::size_t i = 0; i < theta.rows; ++i) {
      log_likelihood[i] = solve_lotka_volterra(theta.row(i), log_populations)
                              ? log_density(x_o, log_populations)
                              : kMinusInfinity;
    }
  }
};

}  // namespace

std::unique_ptr<Task> make_lotka_volterra(const TaskOptions&) { return std::make_unique<LotkaVolterra>(); }

}  // namespace nrec::tasks
