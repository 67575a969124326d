// Infers the mean and scale of a normal sample from five summaries of it, with nrec's library and a simulator function of our own.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

#include "nrec/inference/sample.h"
#include "nrec/inference/summarise.h"
#include "nrec/simulation/simulator.h"
#include "nrec/training/train.h"

int main() try {
  const auto prior = nrec::Prior::from_terms({
      {.names = {"mean"}, .family = "normal", .parameters = {{"mean", {0.0}}, {"sd", {2.0}}}},
      {.names = {"scale"}, .family = "log_normal", .parameters = {{"location", {0.0}}, {"scale", {0.5}}}},
  });
  // Twenty draws, reduced to their quartiles and extremes.
  const nrec::FunctionSimulator simulator("quartiles", 2, 5,
                                          [](auto theta, nrec::RandomStream& random, auto x) {
                                            std::vector<double> draws(20);
                                            for (double& draw : draws)
                                              draw = theta[0] + theta[1] * random.normal();
                                            std::sort(draws.begin(), draws.end());
                                            for (int k = 0; k < 5; ++k) x[k] = draws[k * 19 / 4];
                                          });
  nrec::ThreadPool pool;
  const nrec::RunContext run{.pool = pool, .seed = 1};
  const auto simulations = nrec::simulate_from_prior(prior, simulator, 5000, run.seed, pool);
  nrec::TrainingOptions training;
  training.num_classes = 15;
  training.training_batch_size = 256;
  training.max_num_epochs = 20;
  const auto result = nrec::train(prior, simulations,
                                  {.hidden_features = 32, .num_blocks = 2, .norm = "layer"}, training, run);
  const std::vector<double> x_o = {-0.4, 0.6, 1.1, 1.5, 2.9};
  const auto draws = nrec::sample(nrec::Posterior::from_estimator(*result.estimator, x_o, run), {}, run);
  for (const auto& row : nrec::summarise(draws))
    std::printf("%s %.2f +- %.2f\n", row.name.c_str(), row.mean, row.sd);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
