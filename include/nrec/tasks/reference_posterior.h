#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "nrec/core/array.h"
#include "nrec/core/stop.h"
#include "nrec/core/thread_pool.h"
#include "nrec/tasks/task.h"

namespace nrec {

/// Independent draws from the posterior of a task with a known likelihood, with what they are worth.
struct ReferencePosterior {
  Matrix<double> theta;  // [num_samples, D]; fewer rows when is_complete is false
  std::string method;    // "exact", or "rejection"
  /// Total variation distance between the law of a draw and the posterior: 0 for exact draws. For rejection the estimated
  /// mass above the bound, with two standard errors added. A classifier between exact and such draws gains at most half of it.
  double error = 0.0;
  double log_evidence = 0.0;  // log p(x_o), nats
  double log_evidence_se = 0.0;
  std::size_t num_candidates = 0;  // evaluations of the likelihood
  double acceptance_rate = 1.0;
  bool is_complete =
      true;  // false: stopped, or the candidates fit the posterior so badly that too many would be needed
};

/// Draws from p(theta | x_o) of any task, and its evidence.
///
/// Tasks with an exact sampler use it; their evidence comes from importance sampling with candidates fitted to the draws.
/// The others: candidates come from a mixture of Student t distributions in the prior's unbounded space, one tenth of them
/// from the prior, fitted along a sequence of tempered likelihoods; a candidate is accepted with probability min(1, w / M),
/// w = likelihood x prior / density of the candidates, M such that the mass above it is at most 2.5e-4 of the whole.
/// Everything is a pure function of (seed, x_o), for any number of threads.
///
/// Errors   as Task::log_likelihood; DomainError: x_o has no posterior
/// Cost     1e5 to 1e6 evaluations of the likelihood. Not reentrant for one pool.
/// Source   docs/methods/tasks.md
ReferencePosterior make_reference_posterior(const Task& task, std::span<const double> x_o,
                                            std::size_t num_samples, std::uint64_t seed, ThreadPool& pool,
                                            const StopRequest* stop = nullptr);

/// Evidence of an observation.
struct ReferenceEvidence {
  double log_evidence = 0.0;    // log p(x_o), nats
  double standard_error = 0.0;  // of log_evidence
};

/// Evidence by importance sampling with candidates fitted to draws from the posterior.
///
/// Shapes   draws [n, D], n >= 1, of p(theta | x_o)
/// Errors   as Task::log_likelihood. Cost 10,000 evaluations of the likelihood. Not reentrant for one pool.
ReferenceEvidence reference_evidence(const Task& task, std::span<const double> x_o,
                                     MatrixView<const double> draws, std::uint64_t seed, ThreadPool& pool);

/// Normalised log posterior density of a theta: log likelihood + log prior - log_evidence; minus infinity outside the support.
double reference_log_density(const Task& task, std::span<const double> x_o, std::span<const double> theta,
                             double log_evidence);

/// An observation of nrec's own set.
struct MadeObservation {
  std::vector<double> x_o;              // [M], may hold nan where the simulation failed
  std::vector<double> true_parameters;  // [D]
};
/// Observation `number` (from 1) of a task: theta from the prior, x_o simulated once. `attempt` > 0 gives another one, for
/// observations whose posterior cannot be drawn. A pure function of its arguments.
///
/// Errors   DomainError: number < 1, attempt < 0
MadeObservation make_observation(const Task& task, int number, int attempt = 0);

}  // namespace nrec
