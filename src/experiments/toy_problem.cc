#include "experiments/toy_problem.h"

#include <cmath>
#include <numbers>

namespace nrec::toy {

namespace {

const double kLogSqrt2Pi = 0.5 * std::log(2.0 * std::numbers::pi);

double upper_tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }
double normal_density(double z) { return std::exp(-0.5 * z * z - kLogSqrt2Pi); }

}  // namespace

Prior prior() {
  return Prior::from_terms({{{"theta"}, "uniform", {{"low", {-kBound}}, {"high", {kBound}}}, "identity"}});
}

FunctionSimulator simulator() {
  return {"importance toy", 1, 1,
          [](std::span<const double> theta, RandomStream& random, std::span<double> x) {
            x[0] = theta[0] + kNoise * random.normal();
          }};
}

SimulationSet simulations(std::size_t num_rows, std::uint64_t seed, ThreadPool& pool) {
  SimulationSet set = simulate_from_prior(prior(), simulator(), num_rows, seed, pool);
  set.source = "importance toy, seed " + std::to_string(seed);
  return set;
}

double log_likelihood(double theta, double x) {
  const double z = (x - theta) / kNoise;
  return -0.5 * z * z - kLogSqrt2Pi - std::log(kNoise);
}

double log_evidence(double x) {
  // Both tails are taken on the side where they are small: nothing cancels.
  const double size = std::fabs(x);
  const double mass = upper_tail((size - kBound) / kNoise) - upper_tail((size + kBound) / kNoise);
  return std::log(mass) - std::log(2.0 * kBound);
}

double log_ratio(double theta, double x) { return log_likelihood(theta, x) - log_evidence(x); }

double likelihood_cdf(double theta, double x) { return upper_tail((theta - x) / kNoise); }

Prior posterior(double x_o) {
  return Prior::from_terms({{{"theta"},
                             "truncated_normal",
                             {{"mean", {x_o}}, {"sd", {kNoise}}, {"low", {-kBound}}, {"high", {kBound}}},
                             "auto"}});
}

Moments posterior_moments(double x_o) {
  const double a = (-kBound - x_o) / kNoise, b = (kBound - x_o) / kNoise;
  const double mass = upper_tail(a) - upper_tail(b);
  const double shift = (normal_density(a) - normal_density(b)) / mass;
  const double spread = (a * normal_density(a) - b * normal_density(b)) / mass;
  return {x_o + kNoise * shift, kNoise * std::sqrt(1.0 + spread - shift * shift)};
}

double mutual_information() {
  // p(x) is smooth on the scale of the noise: a step of a fiftieth of it is far below the error wanted.
  constexpr double kReach = kBound + 10.0 * kNoise;
  constexpr double kStep = kNoise / 50.0;
  double entropy = 0.0;
  for (double x = -kReach; x <= kReach; x += kStep) {
    const double log_p = log_evidence(x);
    entropy -= kStep * std::exp(log_p) * log_p;
  }
  return entropy - (0.5 + kLogSqrt2Pi + std::log(kNoise));
}

double observation(double theta, std::uint64_t seed) {
  return theta + kNoise * RandomStream(seed, Stream::observation).normal();
}

void conditional_rows(double theta, std::uint64_t seed, std::uint64_t first_row, std::span<double> x) {
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = theta + kNoise * RandomStream(seed, Stream::check, first_row + i).normal();
}

void marginal_rows(std::uint64_t seed, std::uint64_t first_row, std::span<double> x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    RandomStream random(seed, Stream::check, first_row + i);
    const double theta = random.uniform(-kBound, kBound);
    x[i] = theta + kNoise * random.normal();
  }
}

}  // namespace nrec::toy
