#include "nrec/tasks/task.h"

#include <cmath>
#include <utility>

#include "catalogue.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"

namespace nrec {

Task::Task(std::string name, Prior prior, std::unique_ptr<const Simulator> simulator)
    : name_(std::move(name)), prior_(std::move(prior)), simulator_(std::move(simulator)) {
  require_internal(simulator_ != nullptr, "a task was made without a simulator");
  if (prior_.dim() != simulator_->dim_theta()) {
    throw ShapeError("task " + name_ + ": the prior has " + std::to_string(prior_.dim()) +
                     " parameters but the simulator takes " + std::to_string(simulator_->dim_theta()) +
                     "; give one prior column per parameter");
  }
}

void Task::require_observation(std::span<const double> x_o) const {
  if (x_o.size() != dim_x()) {
    throw ShapeError("task " + name_ + ": x_o has " + std::to_string(x_o.size()) +
                     " numbers but one observation has " + std::to_string(dim_x()) +
                     "; give one row of the simulator's output");
  }
  for (std::size_t j = 0; j < x_o.size(); ++j) {
    if (!std::isfinite(x_o[j])) {
      throw DomainError("task " + name_ + ": x_o column " + std::to_string(j + 1) + " = " +
                        number_text(x_o[j]) + "; an observation must be finite");
    }
  }
  check_observation(x_o);
}

void Task::log_likelihood(MatrixView<const double> theta, std::span<const double> x_o,
                          std::span<double> log_likelihood) const {
  if (theta.cols != dim_theta()) {
    throw ShapeError("task " + name_ + ": theta has " + std::to_string(theta.cols) +
                     " columns but the task has " + std::to_string(dim_theta()) +
                     " parameters; give one column per parameter");
  }
  if (log_likelihood.size() != theta.rows) {
    throw ShapeError("task " + name_ + ": log_likelihood has room for " +
                     std::to_string(log_likelihood.size()) + " values but theta has " +
                     std::to_string(theta.rows) + " rows; give one value per row");
  }
  require_observation(x_o);
  evaluate_log_likelihood(theta, x_o, log_likelihood);
  for (double& value : log_likelihood) {
    if (std::isnan(value)) value = tasks::kMinusInfinity;
  }
}

Matrix<double> Task::reference_posterior(std::span<const double> x_o, std::size_t num_samples,
                                         std::uint64_t seed) const {
  if (!has_reference_posterior()) {
    throw UnsupportedError(
        "task " + name_ +
        " has no exact posterior sampler; read the benchmark's reference samples of its ten observations, or "
        "sample prior times likelihood by MCMC");
  }
  require_observation(x_o);
  Matrix<double> theta(num_samples, dim_theta());
  for (std::size_t i = 0; i < num_samples; ++i) {
    RandomStream random(seed, Stream::reference, i);
    draw_reference(x_o, random, theta.row(i));
  }
  return theta;
}

void Task::check_observation(std::span<const double> /*x_o*/) const {}

void Task::draw_reference(std::span<const double> /*x_o*/, RandomStream& /*random*/,
                          std::span<double> /*theta*/) const {
  throw InternalError("internal error: task " + name_ + " promises reference draws but does not make them");
}

}  // namespace nrec
