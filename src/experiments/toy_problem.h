#pragma once

#include <cstdint>
#include <span>

#include "nrec/core/thread_pool.h"
#include "nrec/priors/prior.h"
#include "nrec/simulation/simulator.h"

namespace nrec::toy {

/// theta ~ U(-sqrt 3, sqrt 3), x = theta + 0.1 e, e ~ N(0, 1), and all that is exact about it.
inline constexpr double kBound = 1.7320508075688772;  // sqrt 3: theta has variance 1
inline constexpr double kNoise = 0.1;

/// The network sees theta itself: "identity".
Prior prior();
FunctionSimulator simulator();
/// Rows 0 .. num_rows - 1 of the campaign with this seed.
SimulationSet simulations(std::size_t num_rows, std::uint64_t seed, ThreadPool& pool);

double log_likelihood(double theta, double x);
/// log p(x) = log [(Phi((x + b) / s) - Phi((x - b) / s)) / 2 b]
double log_evidence(double x);
double log_ratio(double theta, double x);
/// Phi((x - theta) / s)
double likelihood_cdf(double theta, double x);
/// N(x_o, s^2) within the bounds of the prior.
Prior posterior(double x_o);
struct Moments {
  double mean, sd;
};
Moments posterior_moments(double x_o);
/// I(theta; x) = H(x) - H(x | theta) by the trapezoidal rule; absolute error below 1e-8 [nats].
double mutual_information();

/// One x, simulated at theta.
double observation(double theta, std::uint64_t seed);
/// Rows of p(x | theta) and of p(x); row i is a pure function of (seed, first_row + i).
void conditional_rows(double theta, std::uint64_t seed, std::uint64_t first_row, std::span<double> x);
void marginal_rows(std::uint64_t seed, std::uint64_t first_row, std::span<double> x);

}  // namespace nrec::toy
