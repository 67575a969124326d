#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/run_context.h"
#include "nrec/priors/conditioned_prior.h"
#include "nrec/priors/prior.h"
#include "nrec/training/ratio_estimator.h"

namespace nrec {

/// Unnormalised posterior for one observation: log density(theta) = log_ratio(theta) + log prior(theta).
///
///   log_ratio(theta) = log p(theta | x_o)/p(theta)                                                    no row failed
///   log_ratio(theta) = log p(theta | x_o, ok)/p(theta) = log r(x_o | theta) + log P(ok | theta)/P(ok)  success model
///
/// Either way its exponential has mean 1 over the prior for an exact estimator. docs/methods/failures.md
///
/// Made from an estimator, or from any function that gives the log ratio (an exact one, for tests). Not to be called from
/// two threads at once: it uses all threads of the pool itself.
class Posterior {
 public:
  using LogRatio = std::function<void(MatrixView<const double> theta, std::span<double> log_ratio)>;
  /// The same with gradients with respect to theta, d_theta [n, D] out.
  using LogRatioGradient = std::function<void(MatrixView<const double> theta, std::span<double> log_ratio,
                                              MatrixView<double> d_theta)>;

  /// Shapes   x_o [dim_x].  Errors as RatioEstimator::encode_x. The estimator is copied. For more than one observation
  /// AmortisedPosterior does once what is the same for all.
  static Posterior from_estimator(const RatioEstimator& estimator, std::span<const double> x_o,
                                  const RunContext& run);
  /// One data set of R independent observations of the same theta: their log ratios add,
  ///
  ///   log_ratio(theta) = sum over rows of log p(theta | x_o[r])/p(theta)
  ///
  /// and so do the errors of the estimator: a posterior of R rows needs ratios that are sqrt(R) times better. With a success
  /// model every row counts as a success. The exponential is an unnormalised density; its mean over the prior is
  /// p(all rows) / product of p(row).
  ///
  /// Shapes   x_o [R, dim_x], R >= 1.  Errors as RatioEstimator::encode_x; ShapeError: no row
  /// Cost     an evaluation costs R times as much
  /// Source   [Hermans2020, app.]; docs/methods/sampling.md
  static Posterior from_iid_rows(const RatioEstimator& estimator, MatrixView<const double> x_o,
                                 const RunContext& run);
  /// `log_ratio` gets thetas [n, D] inside the support and fills n values; nan counts as minus infinity.
  /// `gradient` gives the same values, and may be empty: then has_gradient() is false.
  static Posterior from_log_ratio(Prior prior, LogRatio log_ratio, LogRatioGradient gradient = {});

  /// The posterior of the free parameters given the fixed ones; `conditioned` is made from prior(). Log ratios are those of
  /// this posterior with the fixed values inserted.
  Posterior conditioned(const ConditionedPrior& conditioned) const;

  /// The same posterior with something between it and its askers: `values` is called instead of the log ratio, and `gradients`
  /// instead of the log ratio with its gradient with respect to u of unbounded_prior(); each is handed what it stands for.
  Posterior through(
      std::function<void(const LogRatio& ask, MatrixView<const double> theta, std::span<double> log_ratio)>
          values,
      std::function<void(const LogRatioGradient& ask, MatrixView<const double> theta,
                         std::span<double> log_ratio, MatrixView<double> d_u)>
          gradients) const;

  const Prior& prior() const { return prior_; }
  /// prior() with the bijection that fits the support in every term: its u are the coordinates of log_density_gradient.
  const Prior& unbounded_prior() const { return unbounded_prior_; }
  /// Whether log_density_gradient can be called.
  bool has_gradient() const { return static_cast<bool>(gradient_); }

  /// As above, up to the estimator's error; minus infinity where it is not finite (counted).
  ///
  /// Shapes   theta [n, D] in; log_ratio [n] out
  void log_ratio(MatrixView<const double> theta, std::span<double> log_ratio) const;

  /// log_ratio + log prior; minus infinity outside the support. Errors: UnsupportedError: a prior given by samples.
  void log_density(MatrixView<const double> theta, std::span<double> log_density) const;

  /// Log density in unbounded space, log_ratio + log prior + log |d theta / d u|, and its gradient with respect to u.
  ///
  /// Where it is minus infinity the gradient is 0. Log ratios that are not finite are counted as in log_ratio.
  ///
  /// Shapes   u [n, D] in, of unbounded_prior(); log_density [n] out; d_u [n, D] out
  /// Errors   ShapeError; UnsupportedError: no gradient, or a prior given by samples
  void log_density_gradient(MatrixView<const double> u, std::span<double> log_density,
                            MatrixView<double> d_u) const;

  /// Log ratios that were not finite so far and counted as zero density (plus infinity included: it is an error of the network).
  std::size_t num_non_finite() const { return *num_non_finite_; }

 private:
  friend class AmortisedPosterior;
  /// Log ratio at theta, which is at u of the unbounded prior, and its gradient with respect to u.
  using UnboundedGradient = std::function<void(MatrixView<const double> theta, MatrixView<const double> u,
                                               std::span<double> log_ratio, MatrixView<double> d_u)>;

  Posterior(Prior prior, LogRatio log_ratio);
  void drop_non_finite(std::span<double> log_ratio) const;
  Prior prior_;
  Prior unbounded_prior_;
  LogRatio function_;
  UnboundedGradient gradient_;
  std::shared_ptr<std::size_t> num_non_finite_;
};

/// The posteriors of many observations from one estimator. What does not depend on the observation, the range of the prior
/// above all, is computed once.
///
/// Its posteriors keep what they need of it. Safe to use from several threads at once, with a context for each.
class AmortisedPosterior {
 public:
  /// Copies the estimator.
  AmortisedPosterior(const RatioEstimator& estimator, ThreadPool& pool);

  /// As Posterior::from_estimator. The pool of `run` must outlive the posterior.
  Posterior at(std::span<const double> x_o, const RunContext& run) const;
  /// As Posterior::from_iid_rows.
  Posterior at_iid_rows(MatrixView<const double> x_o, const RunContext& run) const;

 private:
  struct Shared;
  class Ratio;
  std::shared_ptr<const Shared> shared_;
};

/// A number of x_o outside the range of the simulations.
struct OutsideColumn {
  std::size_t column;
  double value, low, high;
  std::size_t row = 0;  // of x_o
};
/// Shapes   x_o [dim_x], or [R, dim_x]: row after row
std::vector<OutsideColumn> columns_outside(const RatioEstimator& estimator, std::span<const double> x_o);
std::vector<OutsideColumn> columns_outside(const RatioEstimator& estimator, MatrixView<const double> x_o);
/// The same where the ranges are known otherwise. Shapes   low, high [dim_x]
std::vector<OutsideColumn> columns_outside(std::span<const double> low, std::span<const double> high,
                                           MatrixView<const double> x_o);
/// One sentence that names the columns, or "" when none is outside. `num_rows` is that of x_o.
std::string outside_warning(const std::vector<OutsideColumn>& columns, std::size_t num_rows = 1);

}  // namespace nrec
