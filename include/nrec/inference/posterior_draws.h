#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/record.h"
#include "nrec/priors/conditioned_prior.h"

namespace nrec {

/// Why a sampler ended.
enum class SamplingStatus {
  complete,         // as many draws as asked for
  budget_spent,     // evaluations or seconds ran out; the draws so far are right, only fewer
  stopped,          // a stop was requested
  chains_disagree,  // R-hat above 1.05: the chains have not found the same distribution
  no_support,       // the ratio is zero (or not finite) at every theta that was tried
  weights_unreliable,  // importance weights: k-hat above its threshold, or a tenth of the draws asked for is too much
};
std::string_view sampling_status_name(SamplingStatus status);
/// Inverse of sampling_status_name; nullopt for other text.
std::optional<SamplingStatus> sampling_status(std::string_view name);
/// Whether the same call with a larger budget would end in the same way: no budget and no stop request had a part in it.
bool is_final(SamplingStatus status);

/// Draws from a posterior with what the sampler says about them.
struct PosteriorDraws {
  Matrix<double> theta;             // [S, D]: chain after chain
  std::size_t num_chains = 1;       // S = num_chains x draws per chain
  std::vector<double> log_ratio;    // [S]
  std::vector<double> log_density;  // [S] normalised log posterior density; empty where there is none
  std::vector<std::string> names;   // [D]
  std::string method;
  SamplingStatus status = SamplingStatus::complete;
  std::string message;  // one sentence: what happened, with a forecast where draws are missing
  Record statistics;    // evaluations, acceptance_rate, seconds_per_draw, ...
  /// Numbers of each draw by ArviZ's names ("energy", "tree_depth", ...), [S] each; empty where a sampler has none.
  std::vector<std::pair<std::string, std::vector<double>>> per_draw;

  std::size_t size() const { return theta.rows(); }
};

/// Draws of the free parameters of a conditioned posterior, with the fixed ones as constant columns.
///
/// Statistics with one number per parameter (r_hat, ess_bulk, ess_tail) get nan for the fixed ones.
/// Shapes   draws.theta [S, F] in; [S, D] out
PosteriorDraws with_fixed_columns(PosteriorDraws draws, const ConditionedPrior& conditioned);

}  // namespace nrec
