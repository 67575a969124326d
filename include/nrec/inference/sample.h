#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nrec/core/options.h"
#include "nrec/core/run_context.h"
#include "nrec/inference/posterior.h"
#include "nrec/inference/posterior_draws.h"

namespace nrec {

/// How to draw, and the budget that no sampler exceeds.
struct SamplingOptions {
  std::string method = "auto";
  std::int64_t num_samples = 10000;
  std::int64_t max_evaluations = 200000000;
  double max_seconds = 600.0;
  std::vector<std::string> fix;  // "name=value": these parameters are held, the others sampled given them
  bool map = true;               // whether commands look for the mode, too; sample() does not
};

/// Section [sampling].
void describe(OptionTable& table, SamplingOptions& options);

/// Errors   UnsupportedError: the method needs the density of the prior, and the prior is given by samples
void require_method(const SamplingOptions& options, const Prior& prior);

/// Draws with the method of the options ("auto" explains its choice in the message). With `fix` the draws have all columns, the
/// fixed ones constant.
/// Errors   ConfigError: unknown method; UnsupportedError: the method needs a prior density and there is none; those of
///          condition()
PosteriorDraws sample(const Posterior& posterior, const SamplingOptions& options, const RunContext& run);

/// Rejection sampling with the prior as proposal.
///
///   accept theta ~ prior when log r - log U > B, U ~ U(0, 1), B = largest log r seen + log 1.2
///
/// The bound comes from the first prior draws and a local search around the best of them; a candidate above it raises it,
/// and what was accepted before is judged again by the same U, so the result is as if the final bound had been known.
/// Candidate i and its U are pure functions of (seed, i). Never hangs: it ends when the draws are complete, the evaluations
/// or seconds are spent, or a stop is requested, and returns what it has with a forecast.
/// Source   [Miller2022, app.]; docs/methods/sampling.md
PosteriorDraws sample_by_rejection(const Posterior& posterior, const SamplingOptions& options,
                                   const RunContext& run);

/// Importance resampling from the prior; a Pareto fit to the tail judges the weights, which are used as they are.
///
/// Prior draws are added until n systematic draws from them are worth 0.9 n independent ones (Kish's n^2 / sum copies^2) and
/// k-hat is at most min(1 - 1 / log10(S), 0.7). A budget that ends before leaves as many draws as the weights carry by that
/// rule, with the status budget_spent; it is weights_unreliable when k-hat is above its threshold or the effective sample
/// size 1 / sum w^2 is below a tenth of the draws asked for. Thetas of the S prior draws are not kept: 8 bytes a draw, at
/// most 50,000,000.
/// Source   [Vehtari2024]; docs/methods/sampling.md
PosteriorDraws sample_by_importance(const Posterior& posterior, const SamplingOptions& options,
                                    const RunContext& run);

/// Coordinate-wise slice sampling in unbounded space, up to 100 chains advanced together.
///
/// Chains start at points that sequential Monte Carlo has led from 100,000 prior draws to the posterior, and jump between the
/// modes that these have found. Stepping out is limited to 1,000 widths, 100 sweeps are warm-up, every tenth is kept, or fewer
/// of 250 sweeps at least. Chains that disagree run up to eight times as long if that promises to help.
/// Rank-normalised split R-hat, bulk and tail ESS are in the statistics; R-hat above 1.05 is the status chains_disagree.
/// Errors   UnsupportedError: a prior given by samples
/// Source   [Neal2003], [DelMoral2006], [terBraak2008], [Vehtari2021]; docs/methods/sampling.md
PosteriorDraws sample_by_slice(const Posterior& posterior, const SamplingOptions& options,
                               const RunContext& run);

/// The no-U-turn sampler (NUTS, Hamiltonian Monte Carlo with trajectories of their own length) in unbounded space, up to 24
/// chains advanced together.
///
/// Multinomial trajectories with the generalised U-turn criterion, at most 1,023 leapfrog steps. Chains start and jump as those of
/// sample_by_slice. Warm-up of 150 iterations: dual averaging to an acceptance of 0.8 and variances of every coordinate, both
/// learned from all chains together. Every later iteration is kept, or every k-th
/// where that would be fewer than 250. R-hat and effective sample sizes as sample_by_slice; an
/// evaluation is one of the gradient, about twice that of the value. A bound of the prior is at infinity whatever its transform.
/// Draws are a pure function of the seed and the number of chains.
/// Errors   UnsupportedError: a prior given by samples, or a log ratio without gradient
/// Source   [Hoffman2014], [Betancourt2017], [Phan2019]; docs/methods/sampling.md
PosteriorDraws sample_by_nuts(const Posterior& posterior, const SamplingOptions& options,
                              const RunContext& run);

}  // namespace nrec
