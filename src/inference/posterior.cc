#include "nrec/inference/posterior.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/core/random.h"
#include "nrec/networks/pair_step.h"
#include "training/encode_theta.h"

namespace nrec {

namespace {
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
}

Posterior::Posterior(Prior prior, LogRatio log_ratio)
    : prior_(std::move(prior)),
      unbounded_prior_(prior_.without_walls()),
      function_(std::move(log_ratio)),
      num_non_finite_(std::make_shared<std::size_t>(0)) {}

Posterior Posterior::from_log_ratio(Prior prior, LogRatio log_ratio, LogRatioGradient gradient) {
  if (!log_ratio) throw ConfigError("posterior: the log ratio function is empty");
  Posterior posterior(std::move(prior), std::move(log_ratio));
  if (gradient) {
    posterior.gradient_ = [gradient = std::move(gradient), space = posterior.unbounded_prior_](
                              MatrixView<const double> theta, MatrixView<const double> u,
                              std::span<double> values, MatrixView<double> d_u) {
      gradient(theta, values, d_u);
      space.pull_back(u, d_u);
    };
  }
  return posterior;
}

namespace {

/// Turns gradients with respect to u of the prior's own transform into those with respect to u of `space`, the prior without
/// walls: they differ in the columns whose own u is theta itself.
void to_space_without_walls(const Prior& prior, const Prior& space, MatrixView<const double> u,
                            MatrixView<double> d) {
  Matrix<double> slope(d.rows, d.cols);
  std::fill(slope.values().begin(), slope.values().end(), 1.0);
  space.pull_back(u, slope);
  for (std::size_t j = 0; j < d.cols; ++j) {
    if (!prior.is_identity(j)) continue;
    for (std::size_t i = 0; i < d.rows; ++i) d(i, j) *= slope(i, j);
  }
}

constexpr std::size_t kRangeDraws = 10000;

/// The smallest and largest of many prior draws, per column of the coordinates that the network sees.
struct PriorRange {
  std::vector<float> low, high;

  explicit PriorRange(const RatioEstimator& estimator, ThreadPool& pool) {
    constexpr std::uint64_t kSeed = 0;  // the same range in every run
    Matrix<double> theta(kRangeDraws, estimator.prior.dim());
    estimator.prior.sample(kSeed, Stream::check, 0, theta);
    Matrix<float> encoded(theta.rows(), theta.cols());
    encode_theta(estimator.prior, estimator.theta_standardiser, theta, encoded, pool);
    low.assign(encoded.row(0).begin(), encoded.row(0).end());
    high = low;
    for (std::size_t i = 1; i < encoded.rows(); ++i) {
      for (std::size_t j = 0; j < low.size(); ++j) {
        low[j] = std::min(low[j], encoded(i, j));
        high[j] = std::max(high[j], encoded(i, j));
      }
    }
  }
};

}  // namespace

/// What the posteriors of all observations share.
struct AmortisedPosterior::Shared {
  RatioEstimator estimator;
  Prior space;       // without walls
  PriorRange range;  // of the coordinates that the network sees

  Shared(const RatioEstimator& from, ThreadPool& pool)
      : estimator(from), space(from.prior.without_walls()), range(estimator, pool) {}
};

/// The estimator with its network ready for the rows of x, whose log ratios add. Beyond what prior draws reach the network was
/// never trained, and its log ratio may rise without limit towards a bound, faster than the prior falls: there it is that of
/// the nearest point within.
class AmortisedPosterior::Ratio {
 public:
  Ratio(std::shared_ptr<const Shared> shared, MatrixView<const float> x, const RunContext& run)
      : shared_(std::move(shared)),
        pool_(run.pool),
        evaluate_(shared_->estimator.network, x, run.isa, run.pool) {}

  void values(MatrixView<const double> theta, std::span<double> log_ratio) const {
    evaluate_(encode(theta), log_ratio);
  }

  void gradients(MatrixView<const double> theta, MatrixView<const double> u, std::span<double> log_ratio,
                 MatrixView<double> d_u) const {
    const Matrix<float> encoded = encode(theta);
    const PriorRange& range = shared_->range;
    evaluate_.with_gradient(encoded, log_ratio, d_u);
    for (std::size_t j = 0; j < theta.cols; ++j) {
      const double scale = shared_->estimator.theta_standardiser.scale[j];
      for (std::size_t i = 0; i < theta.rows; ++i) {
        const bool is_within = encoded(i, j) > range.low[j] && encoded(i, j) < range.high[j];
        d_u(i, j) = is_within ? d_u(i, j) / scale : 0.0;
      }
    }
    to_space_without_walls(shared_->estimator.prior, shared_->space, u, d_u);
  }

 private:
  Matrix<float> encode(MatrixView<const double> theta) const {
    const RatioEstimator& estimator = shared_->estimator;
    const PriorRange& range = shared_->range;
    Matrix<float> encoded(theta.rows, theta.cols);
    encode_theta(estimator.prior, estimator.theta_standardiser, theta, encoded, pool_);
    for (std::size_t i = 0; i < encoded.rows(); ++i) {
      for (std::size_t j = 0; j < encoded.cols(); ++j)
        encoded(i, j) = std::clamp(encoded(i, j), range.low[j], range.high[j]);
    }
    return encoded;
  }

  std::shared_ptr<const Shared> shared_;
  ThreadPool& pool_;
  PairEvaluator evaluate_;
};

namespace {

/// log P(ok | theta) - log P(ok) for each of the rows of x, none of which failed, to be added to their log ratio.
class SuccessRatio {
 public:
  SuccessRatio(const SuccessModel& model, const Prior& prior, std::size_t num_rows, const RunContext& run)
      : prior_(prior),
        space_(prior.without_walls()),
        log_rate_(std::log(model.rate())),
        num_rows_(static_cast<double>(num_rows)),
        evaluate_(model, prior, run) {}

  void add_values(MatrixView<const double> theta, std::span<double> log_ratio) const {
    std::vector<double> log_p(theta.rows);
    evaluate_(theta, log_p);
    for (std::size_t i = 0; i < log_p.size(); ++i) log_ratio[i] += num_rows_ * (log_p[i] - log_rate_);
  }

  void add_gradients(MatrixView<const double> theta, MatrixView<const double> u, std::span<double> log_ratio,
                     MatrixView<double> d_u) const {
    std::vector<double> log_p(theta.rows);
    Matrix<double> d(theta.rows, theta.cols);
    evaluate_.with_gradient(theta, log_p, d);
    to_space_without_walls(prior_, space_, u, d);
    for (std::size_t i = 0; i < log_p.size(); ++i) {
      log_ratio[i] += num_rows_ * (log_p[i] - log_rate_);
      for (std::size_t j = 0; j < d.cols(); ++j) d_u(i, j) += num_rows_ * d(i, j);
    }
  }

 private:
  Prior prior_, space_;
  double log_rate_, num_rows_;
  SuccessEvaluator evaluate_;
};

}  // namespace

AmortisedPosterior::AmortisedPosterior(const RatioEstimator& estimator, ThreadPool& pool)
    : shared_(std::make_shared<const Shared>(estimator, pool)) {}

Posterior AmortisedPosterior::at(std::span<const double> x_o, const RunContext& run) const {
  return at_iid_rows({x_o.data(), 1, x_o.size()}, run);
}

Posterior AmortisedPosterior::at_iid_rows(MatrixView<const double> x_o, const RunContext& run) const {
  const RatioEstimator& estimator = shared_->estimator;
  Matrix<float> x(x_o.rows, x_o.cols);
  for (std::size_t i = 0; i < x_o.rows; ++i) {
    const std::vector<float> row = estimator.encode_x(x_o.row(i));
    std::copy(row.begin(), row.end(), x.row(i).begin());
  }
  const auto ratio = std::make_shared<const Ratio>(shared_, x, run);
  std::shared_ptr<const SuccessRatio> success;  // null: no row failed, or at a constant rate
  if (estimator.success && estimator.success->network)
    success = std::make_shared<const SuccessRatio>(*estimator.success, estimator.prior, x_o.rows, run);
  Posterior posterior(estimator.prior,
                      [ratio, success](MatrixView<const double> theta, std::span<double> log_ratio) {
                        ratio->values(theta, log_ratio);
                        if (success) success->add_values(theta, log_ratio);
                      });
  posterior.gradient_ = [ratio, success](MatrixView<const double> theta, MatrixView<const double> u,
                                         std::span<double> log_ratio, MatrixView<double> d_u) {
    ratio->gradients(theta, u, log_ratio, d_u);
    if (success) success->add_gradients(theta, u, log_ratio, d_u);
  };
  return posterior;
}

Posterior Posterior::from_estimator(const RatioEstimator& estimator, std::span<const double> x_o,
                                    const RunContext& run) {
  return AmortisedPosterior(estimator, run.pool).at(x_o, run);
}

Posterior Posterior::from_iid_rows(const RatioEstimator& estimator, MatrixView<const double> x_o,
                                   const RunContext& run) {
  return AmortisedPosterior(estimator, run.pool).at_iid_rows(x_o, run);
}

Posterior Posterior::conditioned(const ConditionedPrior& conditioned) const {
  if (conditioned.free_columns.size() == prior_.dim()) return *this;
  Posterior posterior(conditioned.prior, [function = function_, conditioned](MatrixView<const double> theta,
                                                                             std::span<double> log_ratio) {
    function(conditioned.all_columns(theta), log_ratio);
  });
  if (!gradient_) return posterior;
  // A free column has the same support with and without the others, so its u is the same in both spaces.
  posterior.gradient_ = [gradient = gradient_, space = unbounded_prior_, conditioned](
                            MatrixView<const double> theta, MatrixView<const double> u,
                            std::span<double> log_ratio, MatrixView<double> d_u) {
    const Matrix<double> all_theta = conditioned.all_columns(theta);
    Matrix<double> all_u(all_theta.rows(), all_theta.cols()), d_all(all_theta.rows(), all_theta.cols());
    space.to_unbounded(all_theta, all_u);
    for (std::size_t i = 0; i < u.rows; ++i) {  // far out theta stands on a bound and has forgotten its u
      for (std::size_t j = 0; j < u.cols; ++j) all_u(i, conditioned.free_columns[j]) = u(i, j);
    }
    gradient(all_theta, all_u, log_ratio, d_all);
    for (std::size_t i = 0; i < u.rows; ++i) {
      for (std::size_t j = 0; j < u.cols; ++j) d_u(i, j) = d_all(i, conditioned.free_columns[j]);
    }
  };
  return posterior;
}

Posterior Posterior::through(
    std::function<void(const LogRatio& ask, MatrixView<const double> theta, std::span<double> log_ratio)>
        values,
    std::function<void(const LogRatioGradient& ask, MatrixView<const double> theta,
                       std::span<double> log_ratio, MatrixView<double> d_u)>
        gradients) const {
  Posterior posterior(prior_, [ask = function_, values = std::move(values)](MatrixView<const double> theta,
                                                                            std::span<double> log_ratio) {
    values(ask, theta, log_ratio);
  });
  if (!gradient_) return posterior;
  posterior.gradient_ = [ask = gradient_, gradients = std::move(gradients)](
                            MatrixView<const double> theta, MatrixView<const double> u,
                            std::span<double> log_ratio, MatrixView<double> d_u) {
    const LogRatioGradient ask_at = [&](MatrixView<const double> at, std::span<double> out,
                                        MatrixView<double> d_out) { ask(at, u, out, d_out); };
    gradients(ask_at, theta, log_ratio, d_u);
  };
  return posterior;
}

void Posterior::log_ratio(MatrixView<const double> theta, std::span<double> log_ratio) const {
  if (theta.cols != prior_.dim() || log_ratio.size() != theta.rows) {
    throw ShapeError("posterior: theta is [" + std::to_string(theta.rows) + ", " +
                     std::to_string(theta.cols) + "] with room for " + std::to_string(log_ratio.size()) +
                     " values; it must have " + std::to_string(prior_.dim()) +
                     " columns and one value a row");
  }
  function_(theta, log_ratio);
  drop_non_finite(log_ratio);
}

void Posterior::drop_non_finite(std::span<double> log_ratio) const {
  for (double& value : log_ratio) {
    if (std::isfinite(value)) continue;
    if (value != kMinusInfinity) ++*num_non_finite_;
    value = kMinusInfinity;
  }
}

void Posterior::log_density(MatrixView<const double> theta, std::span<double> log_density) const {
  std::vector<double> log_prior(theta.rows);
  prior_.log_prob(theta, log_prior);
  log_ratio(theta, log_density);
  for (std::size_t i = 0; i < theta.rows; ++i)
    log_density[i] = log_prior[i] == kMinusInfinity ? kMinusInfinity : log_density[i] + log_prior[i];
}

void Posterior::log_density_gradient(MatrixView<const double> u, std::span<double> log_density,
                                     MatrixView<double> d_u) const {
  if (!gradient_) {
    throw UnsupportedError(
        "posterior: the log ratio has no gradient; give from_log_ratio one, or use a method without "
        "gradients "
        "(rejection, slice)");
  }
  unbounded_prior_.unbounded_log_prob(u, log_density, d_u);
  Matrix<double> theta(u.rows, u.cols), d_ratio(u.rows, u.cols);
  unbounded_prior_.to_constrained(u, theta);
  std::vector<double> ratio(u.rows);
  gradient_(theta, u, ratio, d_ratio);
  drop_non_finite(ratio);
  for (std::size_t i = 0; i < u.rows; ++i) {
    log_density[i] += ratio[i];
    for (std::size_t j = 0; j < u.cols; ++j)
      d_u(i, j) = log_density[i] == kMinusInfinity ? 0.0 : d_u(i, j) + d_ratio(i, j);
  }
}

std::vector<OutsideColumn> columns_outside(std::span<const double> low, std::span<const double> high,
                                           MatrixView<const double> x_o) {
  std::vector<OutsideColumn> columns;
  for (std::size_t i = 0; i < x_o.rows; ++i) {
    for (std::size_t j = 0; j < std::min(x_o.cols, low.size()); ++j) {
      const double value = x_o(i, j);
      if (value < low[j] || value > high[j]) columns.push_back({j, value, low[j], high[j], i});
    }
  }
  return columns;
}

std::vector<OutsideColumn> columns_outside(const RatioEstimator& estimator, MatrixView<const double> x_o) {
  return columns_outside(estimator.x_low, estimator.x_high, x_o);
}

std::vector<OutsideColumn> columns_outside(const RatioEstimator& estimator, std::span<const double> x_o) {
  return columns_outside(estimator, {x_o.data(), 1, x_o.size()});
}

namespace {

std::string outside_head(const std::vector<OutsideColumn>& columns, std::size_t num_rows) {
  if (num_rows == 1)
    return "the observation is outside the range of all simulations in " + std::to_string(columns.size()) +
           (columns.size() == 1 ? " column: " : " columns: ");
  std::size_t rows = 1;
  for (std::size_t i = 1; i < columns.size(); ++i) rows += columns[i].row != columns[i - 1].row;
  return std::to_string(rows) + " of " + std::to_string(num_rows) +
         " rows of the observation are outside the range of all simulations: ";
}

}  // namespace

std::string outside_warning(const std::vector<OutsideColumn>& columns, std::size_t num_rows) {
  if (columns.empty()) return "";
  constexpr std::size_t kShown = 5;
  std::string text = outside_head(columns, num_rows);
  for (std::size_t i = 0; i < std::min(columns.size(), kShown); ++i) {
    const OutsideColumn& c = columns[i];
    const std::string row = num_rows == 1 ? "" : std::to_string(c.row) + ", ";
    text += (i ? ", " : "") + std::string("x_o[") + row + std::to_string(c.column) +
            "] = " + number_text(c.value) + " (simulated " + number_text(c.low) + " to " +
            number_text(c.high) + ")";
  }
  if (columns.size() > kShown) text += " and " + std::to_string(columns.size() - kShown) + " more";
  return text +
         "; the network extrapolates there: check the order and units of x_o, or widen the prior or the "
         "simulator";
}

}  // namespace nrec
