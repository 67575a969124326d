#pragma once

#include <span>
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
  std::string
      name;  // "coverage", "normalisation", "observation range", "independent rows", "failures", "draws"
  Verdict verdict = Verdict::trusted;
  std::string sentence;          // with the numbers and, if it is not trusted, what to do
  std::string caveat = {};       // where it is trusted: what that does not say
  bool shows_deviation = false;  // where it is trusted: a test sees one, too small to matter
};

/// "all checks passed" with the caveats of the items, for a report whose items are all trusted; `all` is its beginning.
std::string passed_sentence(std::string_view all, std::span<const CheckItem> items);

/// What all checks of a run say together.
struct CheckReport {
  Verdict verdict = Verdict::cannot_tell;  // the worst of the items
  std::string sentence;                    // which check decided, and the next step
  std::vector<CheckItem> items;
  Record record;  // all numbers, names without prefix
};

/// What was observed, with the draws that came of it.
struct ObservedDraws {
  MatrixView<const double> x_o;  // [R, M]
  /// One for all rows (one observation, or R independent rows of one data set), or one for every row (a batch).
  std::span<const PosteriorDraws> draws;

  bool has_iid_rows() const { return draws.size() == 1 && x_o.rows > 1; }
};

/// Most independent rows of one data set for which `num_ranks` ranks of single held-out rows can vouch.
///
/// Errors of log ratios add over rows: a posterior of R rows that is off by d of its sds comes of posteriors of one row that are
/// off by d / sqrt(R). A shift of d / sqrt(R) moves the mean of n ranks by about d sqrt(n / R) standard errors; two of them
/// at d = 1/2 is the least that a check should see: R = n / 16.
std::size_t most_iid_rows(std::size_t num_ranks);

/// The checks that every run carries, in seconds:
/// - observation range: is x_o inside the range of the simulations, column by column;
/// - independent rows (only where there are several): are there more of them than the coverage check can vouch for;
/// - normalisation: mean ratio under the prior over held-out rows, and Z(x_o), should be 1 (skipped for NRE-B);
/// - coverage: highest-density ranks of held-out thetas under the estimated posterior, by self-normalised importance
///   weights of shared prior draws, against the uniform law (Kolmogorov-Smirnov), with the direction (too narrow/wide);
/// - failures (only where rows failed): dropped rows, or what P(ok | theta) rests on and how it does on held-out rows;
/// - draws: did the sampler finish, are there draws, were log ratios finite.
///
/// Where rows failed, the held-out rows are successes: draws of p(theta, x | ok). With a success model the posterior's ratio
/// contains P(ok | theta)/P(ok), so that weights of prior draws are those of p(theta | x, ok) and their mean should be 1.
///
/// Of a batch, every observation is looked at in the checks of range and draws, the worst decides.
///
/// Shapes   observed.x_o [R, M]; held_out_theta [n, D], held_out_x [n, M] may be empty: the coverage check then says "cannot tell".
/// Errors   ShapeError; ConfigError: neither one set of draws nor one for every row. Cost at most about max_rows * num_prior_draws evaluations of the network.
/// Source   [Miller2022, sec. 3.4], [Hermans2022]
CheckReport quick_check(const RatioEstimator& estimator, const ObservedDraws& observed,
                        MatrixView<const double> held_out_theta, MatrixView<const double> held_out_x,
                        const RunContext& run);
/// The same for one observation. Shapes   x_o [M]
CheckReport quick_check(const RatioEstimator& estimator, std::span<const double> x_o,
                        const PosteriorDraws& draws, MatrixView<const double> held_out_theta,
                        MatrixView<const double> held_out_x, const RunContext& run);

}  // namespace nrec
