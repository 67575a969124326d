#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/random.h"
#include "nrec/priors/prior.h"
#include "nrec/simulation/simulator.h"

namespace nrec {

/// A benchmark problem with a known answer: prior, simulator and the exact likelihood of what the simulator makes.
///
/// Immutable; all members are thread-safe. To write one: docs/howto/add_a_task.md. Formulas: docs/methods/tasks.md.
class Task {
 public:
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  const std::string& name() const { return name_; }
  const Prior& prior() const { return prior_; }
  const Simulator& simulator() const { return *simulator_; }
  std::size_t dim_theta() const { return prior_.dim(); }
  std::size_t dim_x() const { return simulator_->dim_x(); }
  const std::vector<std::string>& parameter_names() const { return prior_.names(); }

  /// Normalised natural log of p(x_o | theta) for each row of theta.
  ///
  /// Shapes   theta [n, D] in; x_o [M] in; log_likelihood [n] out
  /// Units    nats; a density for continuous data, a probability for counts
  /// Errors   ShapeError: sizes differ from D, M, n; DomainError: x_o not finite or not a value this simulator can make
  ///          (a count that is not whole, a population that is not positive)
  /// Numerics -infinity where theta makes x_o impossible, where theta is nan, and where the noise-free curve cannot be
  ///          solved; the prior's support is not looked at
  void log_likelihood(MatrixView<const double> theta, std::span<const double> x_o,
                      std::span<double> log_likelihood) const;

  /// Whether reference_posterior draws exactly and independently.
  virtual bool has_reference_posterior() const { return false; }

  /// `num_samples` exact, independent draws from the posterior p(theta | x_o), for any x_o the model can make.
  /// Row i is a pure function of (seed, i).
  ///
  /// Shapes   x_o [M] in; returns [num_samples, D]
  /// Errors   UnsupportedError: this task has no exact sampler; ShapeError, DomainError as log_likelihood;
  ///          DomainError: x_o is so far from what the prior allows that its posterior cannot be drawn
  Matrix<double> reference_posterior(std::span<const double> x_o, std::size_t num_samples,
                                     std::uint64_t seed) const;

 protected:
  /// Errors: ShapeError: prior.dim() != simulator->dim_theta().
  Task(std::string name, Prior prior, std::unique_ptr<const Simulator> simulator);

 private:
  /// Called with sizes already checked and x_o finite. The base version accepts.
  virtual void check_observation(std::span<const double> x_o) const;
  virtual void evaluate_log_likelihood(MatrixView<const double> theta, std::span<const double> x_o,
                                       std::span<double> log_likelihood) const = 0;
  /// One posterior draw; only called when has_reference_posterior().
  virtual void draw_reference(std::span<const double> x_o, RandomStream& random,
                              std::span<double> theta) const;
  void require_observation(std::span<const double> x_o) const;

  std::string name_;
  Prior prior_;
  std::unique_ptr<const Simulator> simulator_;
};

/// Switches of tasks that reproduce published defects; the defaults are right.
struct TaskOptions {
  /// gaussian_mixture only: one component of the mixture for everything this task object simulates, as in the
  /// benchmark before its version 1.1.0, instead of one per row.
  bool component_per_call = false;
  /// Seed of that one coin; give the seed of the simulation run, and make one task per call of the simulator.
  std::uint64_t component_seed = 0;
};

/// The task called `name`.
/// Errors   ConfigError: unknown name (with the nearest known one), component_per_call for a task without components
/// Cost     slcp_distractors regenerates its frozen constants once per process, a few milliseconds
std::unique_ptr<Task> make_task(std::string_view name, const TaskOptions& options = {});

/// Names of all tasks in the order of the documentation.
const std::vector<std::string>& task_names();

}  // namespace nrec
