#pragma once

#include <cmath>
#include <functional>
#include <string>

#include "nrec/simulation/simulation_set.h"
#include "nrec/simulation/simulator.h"

namespace nrec::testing {

/// P(ok | theta) of a made-up simulator.
using SuccessChance = std::function<double(std::span<const double> theta)>;

inline double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

/// theta ~ U(0, 1)^D.
inline Prior cube_prior(std::size_t dim) {
  std::vector<PriorTerm> terms;
  for (std::size_t d = 0; d < dim; ++d)
    terms.push_back({{"t" + std::to_string(d + 1)}, "uniform", {{"low", {0.0}}, {"high", {1.0}}}, "auto"});
  return Prior::from_terms(terms);
}

/// Rows that succeed with the chance `chance`, x = theta_1; the rule `model` is applied.
inline SimulationSet failing_rows(std::size_t dim, std::size_t rows, const SuccessChance& chance,
                                  ThreadPool& pool, std::uint64_t seed = 1) {
  const FunctionSimulator simulator(
      "failing", dim, 1, [&](std::span<const double> theta, RandomStream& random, std::span<double> x) {
        x[0] = random.uniform() < chance(theta) ? theta[0] : std::nan("");
      });
  return without_failures(simulate_from_prior(cube_prior(dim), simulator, rows, seed, pool),
                          FailureRule::model);
}

/// theta ~ U(0, 1), x = theta + N(0, 0.1), which fails when x > 0.8: the example of docs/methods/failures.md.
inline SimulationSet saturating_rows(std::size_t rows, FailureRule rule, ThreadPool& pool,
                                     std::uint64_t seed = 1) {
  const FunctionSimulator simulator(
      "saturating", 1, 1, [](std::span<const double> theta, RandomStream& random, std::span<double> x) {
        x[0] = theta[0] + 0.1 * random.normal();
        if (x[0] > 0.8) x[0] = std::nan("");
      });
  return without_failures(simulate_from_prior(cube_prior(1), simulator, rows, seed, pool), rule);
}

}  // namespace nrec::testing
