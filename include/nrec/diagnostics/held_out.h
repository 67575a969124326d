#pragma once

#include <cstddef>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/run_context.h"
#include "nrec/diagnostics/posterior_ranks.h"
#include "nrec/diagnostics/ratio_information.h"
#include "nrec/inference/sample_many.h"
#include "nrec/priors/prior.h"

namespace nrec {

/// How held-out rows are looked at.
struct HeldOutOptions {
  std::size_t max_rows = 1000;  // the first so many are used; 0: all
  std::size_t num_prior_draws =
      4096;  // of each row's own, at least 2; ten times as many for narrow posteriors
  std::size_t num_posterior_draws = 200;  // by a sampler, for posteriors too narrow for these; 0: never
};

/// What a ratio says at held-out pairs (theta, x): all that calibration and the checks of the ratio are computed from.
///
/// Rows are in the order of the pairs; n is the number of rows that were finished.
struct HeldOutRatios {
  std::vector<PosteriorRanks> ranks;    // [n]
  std::vector<double> log_ratio;        // [n] h of the pair
  std::vector<LogMeanExp> z;            // [n] mean ratio over prior draws
  std::vector<double> effective_draws;  // [n] that the ranks rest on, about
  Matrix<double> draws;                 // [n, D] one posterior draw of each row
  std::vector<double> draw_log_ratio;   // [n]
  std::vector<double>
      draw_log_z;  // [n] log mean ratio over the half of the prior draws that it was drawn from
  std::vector<double> other_log_z;      // [n] over the other half
  Matrix<double> prior_draws;           // [n, D] one draw of the prior
  std::vector<double> prior_log_ratio;  // [n]
  std::size_t num_more_draws = 0;       // rows with ten times as many prior draws
  std::size_t num_sampled = 0;          // rows that went to a sampler
  std::size_t num_without_support = 0;  // rows whose ratio is 0 at every point: their ranks are chance
  bool is_complete = true;              // no stop request or time limit cut it short

  std::size_t num_rows() const { return log_ratio.size(); }
  /// Mean weight of the true thetas in their sets: the share of chance in the ranks.
  double mean_own_share() const;
  /// A column of the ranks. Shapes   returns [n]
  std::vector<double> parameter_ranks(std::size_t column) const;
  std::vector<double> density_ranks() const;
  std::vector<double> distance_ranks() const;
};

/// Evaluates the ratio of each held-out row at its own theta and at fresh prior draws, and ranks the true theta.
///
/// Prior draws weighted by the ratio stand for the posterior. A row whose prior draws alone are worth fewer than 20 gets ten times
/// as many fresh ones, and if these are worth fewer than 3, draws of a slice sampler (of "auto" where the prior has no density). Which of them it gets does not depend on the
/// true theta, so ranks stay uniform for an exact posterior.
///
/// Shapes   theta [N, D]; `posterior` makes the posterior of row i
/// Errors   ShapeError: no rows, columns differ; DomainError: num_prior_draws < 2; those of `posterior` and sample()
/// Numerics a pure function of run.seed, whatever the number of threads
/// Cost     n num_prior_draws evaluations, at most 11 times as many, and samplers; rows side by side
/// Source   docs/methods/calibration.md
HeldOutRatios evaluate_held_out(const Prior& prior, const PosteriorMaker& posterior,
                                MatrixView<const double> theta, const HeldOutOptions& options,
                                const RunContext& run);

}  // namespace nrec
