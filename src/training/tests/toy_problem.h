#pragma once

#include <cmath>

#include "nrec/simulation/simulator.h"
#include "nrec/training/train.h"

namespace nrec::testing {

/// theta ~ U(-sqrt 3, sqrt 3), x = theta + 0.1 e: the toy of the importance-sampling diagnostic; I(theta; x) = 2.178 nats.
inline Prior toy_prior() {
  const double bound = std::sqrt(3.0);
  return Prior::from_terms({{{"theta"}, "uniform", {{"low", {-bound}}, {"high", {bound}}}, "auto"}});
}

inline FunctionSimulator toy_simulator() {
  return {"toy", 1, 1, [](std::span<const double> theta, RandomStream& random, std::span<double> x) {
            x[0] = theta[0] + 0.1 * random.normal();
          }};
}

inline SimulationSet toy_simulations(std::size_t n, ThreadPool& pool, std::uint64_t seed = 1) {
  return simulate_from_prior(toy_prior(), toy_simulator(), n, seed, pool);
}

/// A network and a run that take well under a second.
inline NetworkOptions small_network(const char* norm = "layer") {
  return {.hidden_features = 16, .num_blocks = 1, .norm = norm};
}
inline TrainingOptions short_training() {
  TrainingOptions options;
  options.num_classes = 9;
  options.training_batch_size = 128;
  options.learning_rate = 2e-3;
  options.learning_rate_schedule = "constant";
  options.max_num_epochs = 5;
  options.stop_after_epochs = 0;
  return options;
}

}  // namespace nrec::testing
