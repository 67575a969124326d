#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/options.h"
#include "nrec/core/run_context.h"
#include "nrec/diagnostics/held_out.h"
#include "nrec/diagnostics/quick_check.h"
#include "nrec/simulation/simulator.h"
#include "nrec/training/ratio_estimator.h"

namespace nrec {

/// What is checked: a posterior for every held-out row. An estimator, or any log ratio (an exact one, for tests).
struct CheckedRatio {
  Prior prior;
  PosteriorMaker posterior;   // of held-out row i
  bool is_normalised = true;  // whether the mean ratio under the prior should be 1: not for NRE-B
};

/// About `count` draws from the posterior of observation i.
using DrawsMaker = std::function<PosteriorDraws(std::size_t i, std::size_t count, const RunContext& run)>;

/// Data simulated at each row of theta [n, D], without the rows that failed; after a stop or the time limit of `run` fewer. Noise is
/// that of rows first_row, first_row + 1 ..
using DataMaker = std::function<Matrix<double>(MatrixView<const double> theta, std::uint64_t first_row,
                                               const RunContext& run)>;

/// What is at hand for the check.
struct CheckData {
  MatrixView<const double> theta;        // [n, D] held-out pairs, not used in training
  MatrixView<const double> x;            // [n, M]
  MatrixView<const double> x_o = {};     // [R, M]; no rows: no observation
  bool has_iid_rows = false;             // the rows of x_o are one data set, else observations of their own
  DrawsMaker draws = {};                 // at x_o, for the predictive check; may be empty
  const Simulator* simulator = nullptr;  // may be null
  DataMaker simulate = {};               // for the predictive check; empty: by `simulator`
  std::vector<CheckItem> items = {};     // found elsewhere, and part of the verdict
  Record record = {};                    // their numbers

  std::size_t num_observations() const {
    return has_iid_rows ? std::min<std::size_t>(1, x_o.rows) : x_o.rows;
  }
};

/// How much is done.
struct FullCheckOptions {
  HeldOutOptions held_out;
  int num_thetas = 3;  // with a simulator: importance-sampling diagnostics, each at one theta of the prior
  std::size_t num_predicted = 1000;  // simulations at posterior draws for x_o
};

/// Every check of calibration and of the ratio, corrected for their number, with a verdict.
///
/// - ranks: true parameters among posterior draws, per parameter (simulation-based calibration): mean, spread, Kolmogorov-Smirnov,
///   chi-squared; shift and width of the posterior in words
/// - coverage: of highest-density regions and central intervals against their levels, binomial bands
/// - tarp: distances from random references
/// - classifier: can a network tell true thetas from posterior draws, given x
/// - ratio: the same with draws weighted by Z(x), which also sees errors that are a function of x; bounds on the information. Not for
///   NRE-B. With a simulator also at single thetas: p(x | theta) against p(x) weighted by exp h
/// - power: the smallest shift and narrowness that so many rows would show
/// - observation: distance of every row of x_o from the simulations
/// - predictive: x_o among simulations at its posterior draws (with a simulator or data.simulate); of one data set of independent rows, the
///   distribution of each column
/// - independent rows: are there more of them than calibration on single rows can vouch for
///
/// Of several observations, each is tested and corrected for their number; where there are 20 or more, also whether more of them than
/// one in 20 have a p-value below 0.05.
///
/// Each test has a p-value, corrected by Holm's method among those on held-out rows and within each of the two items about x_o, and an effect. Not
/// trusted: corrected p < 0.01 and an effect worth mentioning (a shift above 0.25 posterior sds, a width off by more than 15 %, a
/// distribution of ranks off by more than 0.12, an area under the curve above 0.62). Cannot tell: the same with p < 0.05, or too few rows
/// to see a shift of half an sd and a posterior 30 % too narrow. An error of the ratio that is a function of x alone leaves the
/// posterior right: cannot tell. An exact posterior is not trusted in at most one of 100 checks of either kind.
///
/// The record has all numbers and curves, docs/formats/record.md.
/// Errors   ShapeError: rows or columns do not fit; those of evaluate_held_out(). After a stop request or the time limit the report
///          is that of the rows so far and of the checks that were begun, "complete" of the record false
/// Cost     dominated by evaluate_held_out(); classifiers a few seconds
/// Source   docs/methods/calibration.md
CheckReport full_check(const CheckedRatio& ratio, const CheckData& data, const FullCheckOptions& options,
                       const RunContext& run);

/// The posteriors of an estimator at each row of x, which must outlive the result. Shapes   x [n, M]
CheckedRatio checked_ratio(const RatioEstimator& estimator, MatrixView<const double> x, ThreadPool& pool);

/// The same for an estimator: posteriors are its own, x_o is also held against the range of its simulations, and rows that failed
/// in training are spoken of. data.draws is made here.
CheckReport full_check(const RatioEstimator& estimator, const CheckData& data,
                       const FullCheckOptions& options, const RunContext& run);

}  // namespace nrec
