#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/record.h"
#include "nrec/core/run_context.h"
#include "nrec/inference/posterior_draws.h"
#include "nrec/training/ratio_estimator.h"

namespace nrec {

/// What a check says, best first.
enum class Verdict { trusted, cannot_tell, not_trusted };
/// "trusted", "cannot tell", "not trusted".
std::string_view verdict_name(Verdict verdict);

/// One check: what it looked at and what it says.
struct CheckItem {
  std::string name;  // "coverage", "normalisation", "observation range", "failures", "draws"
  Verdict verdict = Verdict::trusted;
  std::string sentence;  // with the numbers and, if it is not trusted, what to do
};

/// What all checks of a run say together.
struct CheckReport {
  Verdict verdict = Verdict::cannot_tell;  // the worst of the items
  std::string sentence;                    // which check decided, and the next step
  std::vector<CheckItem> items;
  Record record;  // all numbers, names without prefix
};

/// The checks that every run carries, in seconds:
/// - observation range: is x_o inside the range of the simulations, column by column;
/// - normalisation: mean ratio under the prior over held-out rows, and Z(x_o), should be 1 (skipped for NRE-B);
/// - coverage: highest-density ranks of held-out thetas under the estimated posterior, by self-normalised importance
///   weights of shared prior draws, against the uniform law (Kolmogorov-Smirnov), with the direction (too narrow/wide);
/// - failures (only where rows failed): dropped rows, or what P(ok | theta) rests on and how it does on held-out rows;
/// - draws: did the sampler finish, are there draws, were log ratios finite.
///
/// Where rows failed, the held-out rows are successes: draws of p(theta, x | ok). With a success model the posterior's ratio
/// contains P(ok | theta)/P(ok), so that weights of prior draws are those of p(theta | x, ok) and their mean should be 1.
///
/// Shapes   x_o [M]; held_out_theta [n, D], held_out_x [n, M] may be empty: the coverage check then says "cannot tell".
/// Errors   ShapeError. Cost at most about max_rows * num_prior_draws evaluations of the network.
/// Source   [Miller2022, sec. 3.4], [Hermans2022]
CheckReport quick_check(const RatioEstimator& estimator, std::span<const double> x_o,
                        const PosteriorDraws& draws, MatrixView<const double> held_out_theta,
                        MatrixView<const double> held_out_x, const RunContext& run);

}  // namespace nrec
