// The gradient of a posterior: from exact ratios, and from an estimator with every kind of coordinate.
#include "nrec/inference/posterior.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "inference/tests/exact_posteriors.h"
#include "nrec/core/error.h"
#include "nrec/networks/pair_step.h"

namespace nrec {
namespace {

struct Gradient {
  std::vector<double> value;
  Matrix<double> d_u;
};

Gradient gradient_at(const Posterior& posterior, const Matrix<double>& u) {
  Gradient g{std::vector<double>(u.rows()), Matrix<double>(u.rows(), u.cols())};
  posterior.log_density_gradient(u, g.value, g.d_u);
  return g;
}

/// Largest distance of the gradient from central differences of the value with step h.
double worst_difference(const Posterior& posterior, const Matrix<double>& u, double h) {
  const Gradient g = gradient_at(posterior, u);
  double worst = 0.0;
  for (std::size_t d = 0; d < u.cols(); ++d) {
    Matrix<double> up = u, down = u;
    for (std::size_t i = 0; i < u.rows(); ++i) {
      up(i, d) += h;
      down(i, d) -= h;
    }
    const std::vector<double> above = gradient_at(posterior, up).value,
                              below = gradient_at(posterior, down).value;
    for (std::size_t i = 0; i < u.rows(); ++i)
      worst = std::max(worst, std::fabs(g.d_u(i, d) - (above[i] - below[i]) / (2 * h)));
  }
  return worst;
}

Matrix<double> unbounded_draws(const Posterior& posterior, std::size_t n) {
  Matrix<double> u(n, posterior.prior().dim());
  posterior.prior().sample(1, Stream::check, 0, u);
  posterior.unbounded_prior().to_unbounded(u, u);
  return u;
}

Prior mixed_prior() {
  return Prior::from_terms({{{"open"}, "uniform", {{"low", {-1}}, {"high", {3}}}, "auto"},
                            {{"walled"}, "uniform", {{"low", {0}}, {"high", {10}}}, "identity"},
                            {{"rate"}, "log_normal", {{"location", {1}}, {"scale", {0.5}}}, "auto"},
                            {{"walled_rate"}, "exponential", {{"rate", {0.2}}}, "identity"},
                            {{"free"}, "normal", {{"mean", {100}}, {"sd", {20}}}, "identity"}});
}

TEST(PosteriorGradient, OfAnExactRatioMatchesDifferences) {
  const Posterior posterior = testing::gaussian_ratio(mixed_prior(), 2.0, 7.0, 0.4);
  EXPECT_TRUE(posterior.has_gradient());
  const Matrix<double> u = unbounded_draws(posterior, 50);
  EXPECT_LT(worst_difference(posterior, u, 1e-5), 1e-5);
}

TEST(PosteriorGradient, ValueIsTheDensityInUnboundedSpace) {
  const Posterior posterior = testing::gaussian_ratio(mixed_prior(), 2.0, 7.0, 0.4);
  const Matrix<double> u = unbounded_draws(posterior, 20);
  Matrix<double> theta(20, 5);
  std::vector<double> density(20), jacobian(20);
  posterior.unbounded_prior().to_constrained(u, theta);
  posterior.log_density(theta, density);
  posterior.unbounded_prior().log_abs_det_jacobian(u, jacobian);
  const Gradient g = gradient_at(posterior, u);
  for (std::size_t i = 0; i < 20; ++i)
    EXPECT_NEAR(g.value[i], density[i] + jacobian[i], 1e-11 * std::fabs(g.value[i]));
}

/// An untrained estimator whose coordinates have scales of their own.
RatioEstimator estimator_of(const Prior& prior, Norm norm) {
  const PairNetworkShape shape{
      .dim_theta = prior.dim(), .dim_x = 2, .hidden_features = 24, .num_blocks = 2, .norm = norm};
  PairNetwork network = PairNetwork::initialised(shape, 5);
  RandomStream random(3, Stream::check);
  auto tensors = network.tensors();
  for (NetworkTensor& tensor : tensors) {
    if (tensor.name.ends_with("weight")) {
      for (float& value : tensor.values) value += static_cast<float>(0.2 * random.normal());
    }
  }
  network.set_tensors(tensors);
  return {.network = std::move(network),
          .prior = prior,
          .theta_standardiser = {{0.1, 5.0, 1.0, 4.0, 100.0}, {1.5, 3.0, 0.5, 6.0, 20.0}},
          .x_standardiser = {{0.0, 0.0}, {1.0, 1.0}},
          .x_low = {-3, -3},
          .x_high = {3, 3},
          .settings = {},
          .history = {}};
}

TEST(PosteriorGradient, OfAnEstimatorMatchesDifferences) {
  ThreadPool pool(2);
  const RunContext run{.pool = pool};
  for (const Norm norm : {Norm::batch, Norm::layer, Norm::none}) {
    const Posterior posterior =
        Posterior::from_estimator(estimator_of(mixed_prior(), norm), std::vector<double>{0.5, -0.5}, run);
    EXPECT_TRUE(posterior.has_gradient());
    const Matrix<double> u = unbounded_draws(posterior, 40);
    const Gradient g = gradient_at(posterior, u);
    double size = 0.0;
    for (const double d : g.d_u.values()) size = std::max(size, std::fabs(d));
    // float32 logits: their rounding over the step, and kinks within it.
    EXPECT_LT(worst_difference(posterior, u, 3e-4), 0.03 * size);
    EXPECT_GT(size, 1.0);
  }
}

TEST(AmortisedPosterior, GivesTheBitsOfOnePosteriorAtATimeAndMayEndBeforeThem) {
  ThreadPool pool(2);
  const RunContext run{.pool = pool};
  const Matrix<double> x_o(2, 2, {0.5, -0.5, 1.5, 0.25});
  std::vector<Posterior> amortised;
  {
    const AmortisedPosterior all(estimator_of(mixed_prior(), Norm::layer), pool);
    for (std::size_t r = 0; r < 2; ++r) amortised.push_back(all.at(x_o.row(r), run));
  }
  for (std::size_t r = 0; r < 2; ++r) {
    const Posterior one =
        Posterior::from_estimator(estimator_of(mixed_prior(), Norm::layer), x_o.row(r), run);
    const Matrix<double> u = unbounded_draws(one, 20);
    Matrix<double> theta(20, 5);
    one.unbounded_prior().to_constrained(u, theta);
    std::vector<double> expected(20), value(20);
    one.log_ratio(theta, expected);
    amortised[r].log_ratio(theta, value);
    EXPECT_EQ(value, expected);
    EXPECT_EQ(gradient_at(amortised[r], u).d_u.values(), gradient_at(one, u).d_u.values());
  }
}

TEST(PosteriorOfIidRows, LogRatiosAndGradientsAddOverTheRows) {
  ThreadPool pool(2);
  const RunContext run{.pool = pool};
  const RatioEstimator estimator = estimator_of(mixed_prior(), Norm::layer);
  const Matrix<double> x_o(3, 2, {0.5, -0.5, 1.5, 0.25, -2.0, 2.0});
  const Posterior all = Posterior::from_iid_rows(estimator, x_o, run);
  const Matrix<double> u = unbounded_draws(all, 20);
  Matrix<double> theta(20, 5);
  all.unbounded_prior().to_constrained(u, theta);
  std::vector<double> prior(20), sum(20, 0.0), value(20), ratio(20);
  Matrix<double> d_prior(20, 5), d_sum(20, 5);
  all.unbounded_prior().unbounded_log_prob(u, prior, d_prior);
  for (std::size_t r = 0; r < 3; ++r) {
    const Posterior one = Posterior::from_estimator(estimator, x_o.row(r), run);
    one.log_ratio(theta, value);
    const Gradient g = gradient_at(one, u);
    for (std::size_t i = 0; i < 20; ++i) {
      sum[i] += value[i];
      for (std::size_t d = 0; d < 5; ++d) d_sum(i, d) += g.d_u(i, d) - d_prior(i, d);
    }
  }
  all.log_ratio(theta, ratio);
  EXPECT_EQ(ratio, sum);
  const Gradient g = gradient_at(all, u);
  for (std::size_t i = 0; i < 20; ++i) {
    for (std::size_t d = 0; d < 5; ++d)
      EXPECT_NEAR(g.d_u(i, d), d_sum(i, d) + d_prior(i, d), 1e-10 * (1.0 + std::fabs(d_sum(i, d))));
  }
}

TEST(PosteriorOfIidRows, RefusesNoRowsAndNamesTheBadOne) {
  ThreadPool pool(1);
  const RunContext run{.pool = pool};
  const RatioEstimator estimator = estimator_of(mixed_prior(), Norm::layer);
  EXPECT_THROW(Posterior::from_iid_rows(estimator, Matrix<double>(0, 2), run), ShapeError);
  EXPECT_THROW(Posterior::from_iid_rows(estimator, Matrix<double>(2, 3), run), ShapeError);
  EXPECT_THROW(Posterior::from_iid_rows(estimator, Matrix<double>(1, 2, {0.0, std::nan("")}), run),
               DomainError);
}

TEST(OutsideWarning, CountsRowsAndNamesTheirNumbers) {
  const RatioEstimator estimator = estimator_of(mixed_prior(), Norm::none);
  const Matrix<double> x_o(3, 2, {0.5, -4.0, 1.5, 0.25, 5.0, 3.5});
  EXPECT_EQ(
      outside_warning(columns_outside(estimator, x_o), 3),
      "2 of 3 rows of the observation are outside the range of all simulations: x_o[0, 1] = -4 "
      "(simulated -3 to 3), x_o[2, 0] = 5 (simulated -3 to 3), x_o[2, 1] = 3.5 (simulated -3 to 3); the "
      "network extrapolates there: check the order and units of x_o, or widen the prior or the simulator");
  EXPECT_EQ(outside_warning(columns_outside(estimator, x_o.row(1))), "");
}

TEST(PosteriorOfAnEstimator, IsConstantBeyondWhatThePriorReaches) {
  // A network may rise without limit where it was never trained; samplers in unbounded space would run there.
  ThreadPool pool(2);
  const Posterior posterior = Posterior::from_estimator(estimator_of(mixed_prior(), Norm::none),
                                                        std::vector<double>{0.5, -0.5}, {.pool = pool});
  const std::size_t open = 0, rate = 2, free = 4;
  Matrix<double> u = unbounded_draws(posterior, 3);
  Matrix<double> far = u, farther = u;
  for (std::size_t i = 0; i < 3; ++i) {
    for (const std::size_t d : {open, rate}) {
      far(i, d) = i % 2 ? 20.0 : -20.0;
      farther(i, d) = i % 2 ? 25.0 : -25.0;
    }
    far(i, free) = 500.0;
    farther(i, free) = 600.0;
  }
  Matrix<double> theta(3, 5);
  std::vector<double> near_ratio(3), ratio(3), same(3), prior(3);
  posterior.unbounded_prior().to_constrained(u, theta);
  posterior.log_ratio(theta, near_ratio);
  posterior.unbounded_prior().to_constrained(far, theta);
  posterior.log_ratio(theta, ratio);
  posterior.unbounded_prior().to_constrained(farther, theta);
  posterior.log_ratio(theta, same);
  EXPECT_EQ(ratio, same);
  EXPECT_NE(ratio, near_ratio);
  const Gradient g = gradient_at(posterior, far);
  Matrix<double> d_prior(3, 5);
  posterior.unbounded_prior().unbounded_log_prob(far, prior, d_prior);
  for (std::size_t i = 0; i < 3; ++i) {
    for (const std::size_t d : {open, rate, free}) EXPECT_EQ(g.d_u(i, d), d_prior(i, d)) << i << " " << d;
  }
}

TEST(PosteriorGradient, IsZeroWhereTheRatioIsNotFiniteAndCountsIt) {
  const Posterior posterior =
      testing::exact(testing::normal_prior(0, 1, 1),
                     [](MatrixView<const double>, std::span<double> r, MatrixView<double> d) {
                       r[0] = std::nan("");
                       r[1] = std::numeric_limits<double>::infinity();
                       r[2] = -std::numeric_limits<double>::infinity();
                       r[3] = 1.0;
                       for (std::size_t i = 0; i < 4; ++i) d(i, 0) = 2.0;
                     });
  const Gradient g = gradient_at(posterior, Matrix<double>(4, 1, {0.5, 0.5, 0.5, 0.5}));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(g.value[i], -std::numeric_limits<double>::infinity());
    EXPECT_EQ(g.d_u(i, 0), 0.0);
  }
  EXPECT_EQ(g.d_u(3, 0), 1.5);
  EXPECT_EQ(posterior.num_non_finite(), 2u);
}

TEST(PosteriorGradient, IsRefusedWithoutAFunction) {
  const Posterior posterior = Posterior::from_log_ratio(
      testing::normal_prior(0, 1, 1),
      [](MatrixView<const double>, std::span<double> r) { std::fill(r.begin(), r.end(), 0.0); });
  EXPECT_FALSE(posterior.has_gradient());
  try {
    gradient_at(posterior, Matrix<double>(1, 1));
    FAIL() << "no error";
  } catch (const UnsupportedError& error) {
    EXPECT_STREQ(error.what(),
                 "posterior: the log ratio has no gradient; give from_log_ratio one, or use a method without "
                 "gradients "
                 "(rejection, slice)");
  }
}

}  // namespace
}  // namespace nrec
