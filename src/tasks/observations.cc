#include <cmath>
#include <limits>
#include <string>

#include "nrec/core/error.h"
#include "nrec/tasks/reference_posterior.h"

namespace nrec {
namespace {

constexpr std::uint64_t kObservationSeed = 1'000'000;
constexpr std::uint64_t kMostNumbers = 1'000'000;  // observations of one attempt, apart in the random streams

}  // namespace

MadeObservation make_observation(const Task& task, int number, int attempt) {
  if (number < 1 || attempt < 0) {
    throw DomainError("task " + task.name() + ": observation number = " + std::to_string(number) +
                      " must be at least 1");
  }
  // A stream of its own: no training simulation shares a number with an observation, whatever its seed.
  const std::uint64_t row =
      2 * (static_cast<std::uint64_t>(attempt) * kMostNumbers + static_cast<std::uint64_t>(number));
  Matrix<double> theta(1, task.dim_theta());
  task.prior().sample(kObservationSeed, Stream::observation, row, theta);
  MadeObservation observation{std::vector<double>(task.dim_x()), theta.values()};
  RandomStream noise(kObservationSeed, Stream::observation, row + 1);
  task.simulator().simulate(theta.row(0), noise, observation.x_o);
  return observation;
}

double reference_log_density(const Task& task, std::span<const double> x_o, std::span<const double> theta,
                             double log_evidence) {
  const MatrixView<const double> row(theta.data(), 1, theta.size());
  double log_likelihood = 0.0, log_prior = 0.0;
  task.log_likelihood(row, x_o, {&log_likelihood, 1});
  task.prior().log_prob(row, {&log_prior, 1});
  if (std::isinf(log_likelihood) || std::isinf(log_prior)) return -std::numeric_limits<double>::infinity();
  return log_likelihood + log_prior - log_evidence;
}

}  // namespace nrec
