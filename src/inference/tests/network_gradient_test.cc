// Gradients of posteriors from networks with a success model and with fixed parameters, against central differences of the
// same density in double precision.
#include <gtest/gtest.h>

#include <cmath>

#include "inference/tests/exact_posteriors.h"
#include "networks/tests/double_network.h"
#include "networks/tests/pair_problem.h"
#include "nrec/inference/sample.h"
#include "nrec/inference/summarise.h"

namespace nrec {
namespace {

const std::vector<double> kObservation = {0.5, -0.5};
constexpr std::size_t kRows = 40;

/// Walls that the network sees and walls that it does not see, a joint term, a half-open support.
Prior mixed_prior() {
  return Prior::from_terms(
      {{{"open"}, "uniform", {{"low", {-1}}, {"high", {3}}}, "auto"},
       {{"walled"}, "uniform", {{"low", {0}}, {"high", {10}}}, "identity"},
       {{"a", "b"}, "multivariate_normal", {{"mean", {100, -1}}, {"covariance", {400, 3, 3, 0.09}}}, "auto"},
       {{"rate"}, "log_normal", {{"location", {1}}, {"scale", {0.5}}}, "auto"}});
}

/// An untrained estimator whose coordinates have scales of their own, with a success model.
RatioEstimator estimator_with_failures() {
  const Prior prior = mixed_prior();
  RatioEstimator estimator{.network = testing::busy_network({.dim_theta = prior.dim(),
                                                             .dim_x = 2,
                                                             .hidden_features = 24,
                                                             .num_blocks = 2,
                                                             .norm = Norm::batch}),
                           .prior = prior,
                           .theta_standardiser = {{0.1, 5.0, 100.0, -1.0, 1.0}, {1.5, 3.0, 20.0, 0.3, 0.5}},
                           .x_standardiser = {{0.0, 0.0}, {1.0, 1.0}},
                           .x_low = {-3, -3},
                           .x_high = {3, 3},
                           .settings = {},
                           .history = {}};
  SuccessModel success{.kind = SuccessKind::network, .num_ok = 70, .num_failed = 30};
  success.network = testing::busy_network(
      {.dim_theta = prior.dim(), .dim_x = 1, .hidden_features = 19, .num_blocks = 2, .norm = Norm::layer});
  success.theta_standardiser = {{0.2, 4.0, 90.0, -1.1, 1.2}, {2.0, 2.5, 25.0, 0.25, 0.6}};
  estimator.success = success;
  return estimator;
}

double logit(const PairNetwork& network, const Standardiser& standardiser, std::span<const double> u,
             std::span<const float> x) {
  std::vector<double> z(u.size());
  for (std::size_t j = 0; j < u.size(); ++j) z[j] = (u[j] - standardiser.shift[j]) / standardiser.scale[j];
  testing::DoubleNetwork truth(network);
  truth.training = false;
  return truth.trunk({truth.input(std::span<const double>(z), x)})[0];
}

/// Log posterior in the unbounded space of all columns, up to a constant, without a float.
double log_density_in_double(const RatioEstimator& estimator, std::span<const double> u) {
  const Prior space = estimator.prior.without_walls();
  Matrix<double> at(1, u.size(), {u.begin(), u.end()}), theta(1, u.size()), own(1, u.size());
  space.to_constrained(at, theta);
  estimator.prior.to_unbounded(theta, own);
  std::vector<double> log_prior(1), jacobian(1);
  space.log_prob(theta, log_prior);
  space.log_abs_det_jacobian(at, jacobian);
  double sum =
      log_prior[0] + jacobian[0] +
      logit(estimator.network, estimator.theta_standardiser, own.row(0), estimator.encode_x(kObservation));
  if (estimator.success) {
    const std::vector<float> no_data = {0.0f};
    const double h =
        logit(*estimator.success->network, estimator.success->theta_standardiser, own.row(0), no_data);
    sum -= std::log1p(std::exp(-h));
  }
  return sum;
}

class NetworkGradient : public ::testing::Test {
 protected:
  Posterior posterior(const RatioEstimator& estimator) {
    return Posterior::from_estimator(estimator, kObservation, run_);
  }
  static ConditionedPrior given(const std::vector<FixedParameter>& fixed) {
    return condition(mixed_prior(), fixed);
  }
  /// Prior draws of the free columns in unbounded space.
  static Matrix<double> draws_of(const Posterior& posterior) {
    Matrix<double> u(kRows, posterior.prior().dim());
    posterior.prior().sample(1, Stream::check, 0, u);
    posterior.unbounded_prior().to_unbounded(u, u);
    return u;
  }
  static Matrix<double> gradient(const Posterior& posterior, const Matrix<double>& u) {
    std::vector<double> value(u.rows());
    Matrix<double> d_u(u.rows(), u.cols());
    posterior.log_density_gradient(u, value, d_u);
    return d_u;
  }
  /// Central differences with respect to the free columns, the others held at their values.
  static Matrix<double> differences(const RatioEstimator& estimator, const ConditionedPrior& conditioned,
                                    const Matrix<double>& u) {
    constexpr double h = 1e-6;
    const Prior space = estimator.prior.without_walls();
    Matrix<double> free_theta(u.rows(), u.cols()), d(u.rows(), u.cols());
    conditioned.prior.without_walls().to_constrained(u, free_theta);
    Matrix<double> all = conditioned.all_columns(free_theta);
    space.to_unbounded(all, all);
    for (std::size_t i = 0; i < u.rows(); ++i) {
      for (std::size_t j = 0; j < u.cols(); ++j) {
        const auto shifted = [&](double step) {
          std::vector<double> moved(all.row(i).begin(), all.row(i).end());
          moved[conditioned.free_columns[j]] += step;
          return log_density_in_double(estimator, moved);
        };
        d(i, j) = (shifted(h) - shifted(-h)) / (2 * h);
      }
    }
    return d;
  }
  /// Largest difference, relative to the largest gradient of its column.
  static double worst(const Matrix<double>& found, const Matrix<double>& expected) {
    double result = 0.0;
    for (std::size_t j = 0; j < found.cols(); ++j) {
      double size = 0.0, difference = 0.0;
      for (std::size_t i = 0; i < found.rows(); ++i) {
        size = std::max(size, std::fabs(expected(i, j)));
        difference = std::max(difference, std::fabs(found(i, j) - expected(i, j)));
      }
      result = std::max(result, difference / size);
    }
    return result;
  }

  static constexpr double kFloatError = 3e-5;  // float32 sums over 24 units and 2 blocks
  ThreadPool pool_{2};
  RunContext run_{.pool = pool_};
};

TEST_F(NetworkGradient, OfASuccessModelMatchesDifferences) {
  const RatioEstimator estimator = estimator_with_failures();
  const Posterior both = posterior(estimator);
  ASSERT_TRUE(both.has_gradient());
  const Matrix<double> u = draws_of(both);
  const Matrix<double> expected = differences(estimator, given({}), u);
  EXPECT_LT(worst(gradient(both, u), expected), kFloatError);
  RatioEstimator alone = estimator;
  alone.success.reset();
  EXPECT_GT(worst(gradient(posterior(alone), u), expected), 0.05);  // the success model's part is seen
}

TEST_F(NetworkGradient, GivenFixedParametersMatchesDifferences) {
  const RatioEstimator estimator = estimator_with_failures();
  const std::vector<FixedParameter> cases[] = {
      {{"open", 0.3}},                // the network sees its logit
      {{"walled", 7.0}},              // the network sees itself
      {{"walled", 10.0}},             // on a wall, which is far away in unbounded space
      {{"b", -1.2}},                  // part of a joint term
      {{"rate", 2.0}, {"a", 120.0}},  // several
      {{"open", 2.9}, {"a", 90.0}, {"b", -0.9}, {"rate", 4.0}},  // one column is left
  };
  for (const auto& fixed : cases) {
    const ConditionedPrior conditioned = given(fixed);
    const Posterior rest = posterior(estimator).conditioned(conditioned);
    ASSERT_TRUE(rest.has_gradient());
    const Matrix<double> u = draws_of(rest);
    const Matrix<double> found = gradient(rest, u), expected = differences(estimator, conditioned, u);
    EXPECT_LT(worst(found, expected), kFloatError) << fixed[0].name << " = " << fixed[0].value;
    std::vector<FixedParameter> moved = fixed;
    moved[0].value *= 0.9;
    EXPECT_GT(worst(found, differences(estimator, given(moved), u)), 0.01);  // another value is seen
  }
}

TEST_F(NetworkGradient, GivenFixedParametersTwiceIsThatOfBoth) {
  const RatioEstimator estimator = estimator_with_failures();
  const std::vector<FixedParameter> first = {{"b", -1.2}}, second = {{"open", 0.3}},
                                    both = {first[0], second[0]};
  const Posterior once = posterior(estimator).conditioned(given(first));
  const Posterior twice = once.conditioned(condition(once.prior(), second));
  const Matrix<double> u = draws_of(twice);
  EXPECT_EQ(gradient(twice, u).values(), gradient(posterior(estimator).conditioned(given(both)), u).values());
}

TEST_F(NetworkGradient, GivenFixedParametersHoldsWhereThetaHasRoundedToItsBound) {
  const ConditionedPrior conditioned = given({{"rate", 2.0}});
  const Posterior rest = posterior(estimator_with_failures()).conditioned(conditioned);
  Matrix<double> u = draws_of(rest);
  u(0, 1) = 60.0;  // "walled" is 10 there, to the last bit; its density falls off as exp(-u)
  std::vector<double> value(kRows);
  Matrix<double> d_u(kRows, u.cols());
  rest.log_density_gradient(u, value, d_u);
  EXPECT_TRUE(std::isfinite(value[0]));
  EXPECT_NEAR(d_u(0, 1), -1.0, 1e-9);
}

TEST_F(NetworkGradient, GivenFixedParametersIsAbsentWhereAllColumnsHaveNone) {
  const Posterior without = Posterior::from_log_ratio(
      mixed_prior(),
      [](MatrixView<const double>, std::span<double> r) { std::fill(r.begin(), r.end(), 0.0); });
  EXPECT_FALSE(without.conditioned(given({{"b", -1.0}})).has_gradient());
}

TEST_F(NetworkGradient, NutsAndSliceAgreeWithASuccessModelAndAFixedParameter) {
  // A network with a tenth of the output: one mode, not far from the prior.
  RatioEstimator mild = estimator_with_failures();
  auto tensors = mild.network.tensors();
  for (NetworkTensor& tensor : tensors) {
    if (!tensor.name.starts_with("out")) continue;
    for (float& value : tensor.values) value *= 0.1f;
  }
  mild.network.set_tensors(tensors);
  const Posterior whole = posterior(mild);
  SamplingOptions options;
  options.fix = {"b=-1.2"};
  options.num_samples = 4000;
  options.method = "nuts";
  const PosteriorDraws by_nuts = sample(whole, options, run_);
  options.method = "slice";
  const PosteriorDraws by_slice = sample(whole, options, run_);
  options.fix = {"b=-0.4"};
  const PosteriorDraws other = sample(whole, options, run_);
  ASSERT_EQ(by_nuts.status, SamplingStatus::complete) << by_nuts.message;
  ASSERT_EQ(by_slice.status, SamplingStatus::complete) << by_slice.message;
  const auto distance = [](const PosteriorDraws& one, const PosteriorDraws& two) {
    const auto a = summarise(one), b = summarise(two);
    double largest = 0.0;
    for (std::size_t j = 0; j < a.size(); ++j) {
      if (a[j].sd == 0.0) continue;  // the fixed one
      largest =
          std::max({largest, std::fabs(a[j].mean - b[j].mean) / std::hypot(a[j].mcse_mean, b[j].mcse_mean),
                    std::fabs(a[j].sd - b[j].sd) / std::hypot(a[j].mcse_sd, b[j].mcse_sd)});
    }
    return largest;
  };
  EXPECT_LT(distance(by_nuts, by_slice), 4);
  EXPECT_GT(distance(by_nuts, other), 8);
  for (std::size_t i = 0; i < by_nuts.size(); ++i) ASSERT_EQ(by_nuts.theta(i, 3), -1.2);
}

}  // namespace
}  // namespace nrec
