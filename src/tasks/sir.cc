#include <algorithm>
#include <array>
#include <cmath>

#include "binomial.h"
#include "catalogue.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "population_curves.h"

namespace nrec::tasks {
namespace {

constexpr std::size_t kParameters = 2;
constexpr int kTested = 1000;  // people tested at each of the ten times

void simulate(std::span<const double> theta, RandomStream& random, std::span<double> x) {
  std::array<double, kCurvePoints> log_infected;
  if (!solve_sir(theta, log_infected)) {
    std::fill(x.begin(), x.end(), std::nan(""));
    return;
  }
  for (std::size_t k = 0; k < kCurvePoints; ++k) {
    const double fraction = std::min(std::exp(log_infected[k]) / kSirPopulation, 1.0);
    x[k] = static_cast<double>(draw_binomial(kTested, fraction, random));
  }
}

Prior sir_prior() {
  return Prior::from_terms({{{"beta"}, "log_normal", {{"location", {std::log(0.4)}}, {"scale", {0.5}}}},
                            {{"gamma"}, "log_normal", {{"location", {std::log(0.125)}}, {"scale", {0.2}}}}});
}

double log_probability(std::span<const double> counts, const std::array<double, kCurvePoints>& log_infected) {
  double sum = 0.0;
  for (std::size_t k = 0; k < kCurvePoints; ++k) {
    const double log_fraction = std::min(log_infected[k] - std::log(kSirPopulation), 0.0);
    const double infected = counts[k];
    const double healthy = static_cast<double>(kTested) - infected;
    sum += log_binomial_coefficient(kTested, static_cast<int>(infected));
    // 0 log 0 = 0: a fraction of one leaves no doubt about healthy = 0.
    if (infected > 0.0) sum += infected * log_fraction;
    if (healthy > 0.0) sum += healthy * std::log1p(-std::exp(log_fraction));
  }
  return sum;
}

class Sir final : public Task {
 public:
  Sir()
      : Task("sir", sir_prior(),
             std::make_unique<FunctionSimulator>("sir", kParameters, kCurvePoints, simulate)) {}

 private:
  void check_observation(std::span<const double> x_o) const override {
    for (std::size_t k = 0; k < x_o.size(); ++k) {
      if (x_o[k] >= 0.0 && x_o[k] <= kTested && x_o[k] == std::floor(x_o[k])) continue;
      throw DomainError("task sir: x_o column " + std::to_string(k + 1) + " = " + number_text(x_o[k]) +
                        " is not a whole number in 0..1000; give the number of infected among 1000 tested");
    }
  }
  void evaluate_log_likelihood(MatrixView<const double> theta, std::span<const double> x_o,
                               std::span<double> log_likelihood) const override {
    std::array<double, kCurvePoints> log_infected;
    for (std::size_t i = 0; i < theta.rows; ++i) {
      log_likelihood[i] =
          solve_sir(theta.row(i), log_infected) ? log_probability(x_o, log_infected) : kMinusInfinity;
    }
  }
};

}  // namespace

std::unique_ptr<Task> make_sir(const TaskOptions&) { return std::make_unique<Sir>(); }

}  // namespace nrec::tasks
