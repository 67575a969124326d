// Gradients of log densities in unbounded space, against differences of the reference densities in long double.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "nrec/core/error.h"
#include "priors/tests/prior_cases.h"

namespace nrec {
namespace {

using Real = long double;
// The reference is a density, not its logarithm: below exp(-11355) long double is 0.
constexpr double kLeastReference = -1e4;

struct ValueAndGradient {
  double value, gradient;
};

ValueAndGradient at(const Prior& prior, double u) {
  ValueAndGradient result{0.0, 0.0};
  prior.unbounded_log_prob({&u, 1, 1}, {&result.value, 1}, {&result.gradient, 1, 1});
  return result;
}

class PriorGradient : public testing::TestWithParam<PriorCase> {
 protected:
  PriorGradient() : prior_(Prior::from_terms({GetParam().term})) {}

  double unbounded(double p) const {
    const double theta = static_cast<double>(GetParam().quantile(p));
    double u = 0.0;
    prior_.to_unbounded({&theta, 1, 1}, {&u, 1, 1});
    return u;
  }
  bool is_walled() const { return GetParam().term.transform == "identity"; }

  /// log p_u(u), written out again from the bounds.
  Real reference(Real u) const {
    const auto [low, high] = prior_.bounds(0);
    const bool has_low = std::isfinite(low), has_high = std::isfinite(high);
    Real theta = u, log_slope = 0;
    if (is_walled()) return std::log(GetParam().pdf(theta));
    if (has_low && has_high) {
      const Real width = static_cast<Real>(high) - low, e = std::exp(-std::fabs(u));
      theta = u < 0 ? low + width * e / (1 + e) : high - width * e / (1 + e);
      log_slope = std::log(width * e / ((1 + e) * (1 + e)));
    } else if (has_low || has_high) {
      theta = has_low ? low + std::exp(u) : high - std::exp(u);
      log_slope = u;
    }
    return std::log(GetParam().pdf(theta)) + log_slope;
  }
  /// Central differences, one step of Richardson's extrapolation.
  double reference_gradient(double u, Real h) const {
    const auto slope = [&](Real step) { return (reference(u + step) - reference(u - step)) / (2 * step); };
    return static_cast<double>((4 * slope(h / 2) - slope(h)) / 3);
  }
  /// What rounding theta(u) next to a bound costs, as a share.
  double rounding(double u) const {
    const auto [low, high] = prior_.bounds(0);
    double theta = 0.0;
    prior_.to_constrained({&u, 1, 1}, {&theta, 1, 1});
    double share = 0.0;
    if (std::isfinite(low) && low != 0.0) share += std::fabs(low) / (theta - low);
    if (std::isfinite(high)) share += std::fabs(high) / (high - theta);
    return std::numeric_limits<double>::epsilon() * share;
  }
  void expect_reference(double u, double spread) const {
    const auto [value, gradient] = at(prior_, u);
    Real h = 2e-3 * spread;
    if (is_walled()) {  // both neighbours inside
      const auto [low, high] = prior_.bounds(0);
      h = std::min({h, 0.5L * (u - low), 0.5L * (high - u)});
    }
    const double expected = reference_gradient(u, h);
    const double size = 1 / spread + std::fabs(expected);
    EXPECT_NEAR(gradient, expected, (1e-8 + 4 * rounding(u)) * size) << "u = " << u;
  }

  Prior prior_;
};

TEST_P(PriorGradient, MatchesTheReferenceFromTheMiddleToTheTails) {
  const double spread = std::fabs(unbounded(0.75) - unbounded(0.25));
  std::size_t checked = 0;
  for (const double p : {1e-9, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-4, 1 - 1e-9}) {
    const double u = unbounded(p);
    if (at(prior_, u).value == -INFINITY || std::fabs(u) == 750.0) continue;  // theta is rounded to the bound
    expect_reference(u, spread);
    ++checked;
  }
  EXPECT_GE(checked, 9u);
}

TEST_P(PriorGradient, MatchesTheReferenceNextToBounds) {
  const double spread = std::fabs(unbounded(0.75) - unbounded(0.25));
  const auto [low, high] = prior_.bounds(0);
  if (is_walled()) {
    EXPECT_EQ(at(prior_, std::nextafter(high, INFINITY)).value, -INFINITY);
    expect_reference(high - 1e-3, spread);
    return;
  }
  if (std::isfinite(low) || std::isfinite(high)) {
    for (const double u : {-5.0, -18.0, 18.0}) {
      if (u > 0 && !(std::isfinite(low) && std::isfinite(high))) continue;  // far out, not near a bound
      if (at(prior_, u).value > kLeastReference) expect_reference(u, spread);
    }
  }
  if (low == 0.0 && at(prior_, -700.0).value > kLeastReference) expect_reference(-700.0, spread);
}

TEST_P(PriorGradient, ValueIsTheSumOfItsParts) {
  for (const double p : {0.01, 0.5, 0.99}) {
    const double u = unbounded(p);
    double theta = 0.0, log_prob = 0.0, jacobian = 0.0;
    prior_.to_constrained({&u, 1, 1}, {&theta, 1, 1});
    prior_.log_prob({&theta, 1, 1}, {&log_prob, 1});
    prior_.log_abs_det_jacobian({&u, 1, 1}, {&jacobian, 1});
    EXPECT_EQ(at(prior_, u).value, log_prob + jacobian);
  }
}

TEST_P(PriorGradient, IsZeroWhereTheDensityIsZeroAndNeverNan) {
  for (const double u : {-1e4, -750.0, -40.0, 40.0, 700.0, 750.0, 1e4, 1e300, HUGE_VAL, -HUGE_VAL}) {
    const auto [value, gradient] = at(prior_, u);
    EXPECT_FALSE(std::isnan(value)) << u;
    EXPECT_FALSE(std::isnan(gradient)) << u;
    if (value == -INFINITY) {
      EXPECT_EQ(gradient, 0.0) << u;
    }
  }
  EXPECT_EQ(at(prior_, std::nan("")).value, -INFINITY);
  EXPECT_EQ(at(prior_, std::nan("")).gradient, 0.0);
}

TEST_P(PriorGradient, PullsBackByTheSlopeOfTheBijection) {
  for (const double p : {0.05, 0.5, 0.95}) {
    const double u = unbounded(p), h = 1e-4;
    double slope = 1.0, up = u + h, down = u - h, log_slope = 0.0;
    prior_.pull_back({&u, 1, 1}, {&slope, 1, 1});
    prior_.log_abs_det_jacobian({&u, 1, 1}, {&log_slope, 1});
    EXPECT_NEAR(std::log(std::fabs(slope)), log_slope, 1e-12 * std::max(1.0, std::fabs(log_slope)));
    prior_.to_constrained({&up, 1, 1}, {&up, 1, 1});
    prior_.to_constrained({&down, 1, 1}, {&down, 1, 1});
    EXPECT_EQ(slope > 0, up > down);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, PriorGradient, testing::ValuesIn(prior_cases()),
                         [](const testing::TestParamInfo<PriorCase>& c) { return c.param.label; });

void expect_difference_quotients(const Prior& prior, const Matrix<double>& u) {
  const std::size_t n = u.rows(), dim = prior.dim();
  Matrix<double> gradient(n, dim), unused(n, dim);
  std::vector<double> value(n);
  prior.unbounded_log_prob(u, value, gradient);
  const auto shifted = [&](std::size_t d, double h) {
    Matrix<double> moved = u;
    for (std::size_t i = 0; i < n; ++i) moved(i, d) += h;
    std::vector<double> result(n);
    prior.unbounded_log_prob(moved, result, unused);
    return result;
  };
  const double h = 2e-5;
  for (std::size_t d = 0; d < dim; ++d) {
    const std::vector<double> up = shifted(d, h), down = shifted(d, -h), near_up = shifted(d, h / 2),
                              near_down = shifted(d, -h / 2);
    for (std::size_t i = 0; i < n; ++i) {
      const double expected = (4 * (near_up[i] - near_down[i]) / h - (up[i] - down[i]) / (2 * h)) / 3;
      ASSERT_NEAR(gradient(i, d), expected, 1e-9 * (1 + std::fabs(expected) + std::fabs(value[i])))
          << "row " << i << ", column " << d;
    }
  }
}

TEST(PriorGradientOfProducts, EveryTermFillsItsOwnColumns) {
  PriorTerm walled = term("beta", {{"alpha", {2}}, {"beta", {3}}}, {"walled"});
  walled.transform = "identity";
  const Prior prior = Prior::from_terms({
      term("uniform", {{"low", {0.1}}, {"high", {10}}}, {"mass"}),
      term("multivariate_normal", {{"mean", {0, 1}}, {"precision", {2, 0.5, 0.5, 1}}}, {"x", "y"}),
      walled,
      term("multivariate_normal",
           {{"mean", {3, -1, 0}}, {"covariance", {4, 1, 0.5, 1, 2, -0.25, 0.5, -0.25, 1}}}, {"a", "b", "c"}),
      term("truncated_normal", {{"mean", {0}}, {"sd", {1}}, {"high", {-1}}}, {"cold"}),
  });
  Matrix<double> u(200, 8);
  prior.sample(3, Stream::prior, 0, u);
  prior.to_unbounded(u, u);
  expect_difference_quotients(prior, u);
  expect_difference_quotients(prior.without_walls(), u);
}

TEST(PriorGradientOfProducts, WithoutWallsChangesTheCoordinatesOnly) {
  PriorTerm walled = term("uniform", {{"low", {-1}}, {"high", {1}}}, {"a"});
  walled.transform = "identity";
  const Prior prior = Prior::from_terms({walled, term("normal", {{"mean", {0}}, {"sd", {2}}}, {"b"})});
  const Prior open = prior.without_walls();
  EXPECT_TRUE(prior.is_identity(0));
  EXPECT_FALSE(open.is_identity(0));
  EXPECT_TRUE(open.is_identity(1));
  EXPECT_THROW((void)open.is_identity(2), ShapeError);
  const std::vector<double> theta = {0.5, 3.0};
  std::vector<double> u(2), value(1), other(1);
  open.to_unbounded({theta.data(), 1, 2}, {u.data(), 1, 2});
  EXPECT_NEAR(u[0], std::log(3.0), 1e-15);
  prior.log_prob({theta.data(), 1, 2}, value);
  open.log_prob({theta.data(), 1, 2}, other);
  EXPECT_EQ(value, other);
}

TEST(PriorGradientOfProducts, RefusesShapesAndTables) {
  const Prior prior = Prior::from_terms({term("normal", {{"mean", {0}}, {"sd", {1}}})});
  Matrix<double> u(3, 1), narrow(2, 1);
  std::vector<double> value(3);
  try {
    prior.unbounded_log_prob(u, value, narrow);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "prior: unbounded_log_prob: d_u has room for 2 rows but 3 are given.");
  }
  EXPECT_THROW(prior.pull_back(u, narrow), ShapeError);
  const Prior table = Prior::from_samples({"a"}, Matrix<double>(2, 1, {0.0, 1.0}));
  EXPECT_THROW(table.unbounded_log_prob(u, value, u), UnsupportedError);
  EXPECT_EQ(table.without_walls().samples(), table.samples());
}

}  // namespace
}  // namespace nrec
