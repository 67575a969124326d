#include "priors/special_functions.h"

#include <gtest/gtest.h>

#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>

#include "priors/tests/prior_cases.h"

namespace nrec {
namespace {

using Real = long double;

// Integral of exp(-(slope t + t^2 / 2)) in long double, cut where the integrand is below 1e-30.
Real tail_integral(Real slope, Real width) {
  const Real reach = 140 / (slope + std::sqrt(slope * slope + 140));
  const Real end = std::min(width, reach);
  return boost::math::quadrature::gauss_kronrod<Real, 61>::integrate(
      [=](Real t) { return std::exp(-t * (slope + t / 2)); }, Real(0), end, 15, 1e-17L);
}

TEST(SpecialFunctions, GaussianTailIntegralMatchesQuadrature) {
  for (const double slope : {0.0, 1e-3, 0.7, 3.0, 5.99, 6.01, 8.0, 30.0, 1e3, 1e8}) {
    for (const double width : {1e-12, 1e-4, 0.1, 0.9, 1.1, 5.0, std::numeric_limits<double>::infinity()}) {
      const double expected = static_cast<double>(tail_integral(slope, width));
      EXPECT_NEAR(gaussian_tail_integral(slope, width) / expected, 1.0, 1e-13) << slope << " " << width;
    }
  }
}

TEST(SpecialFunctions, StirlingErrorMatchesLogGamma) {
  const Real two_pi = 2 * 3.14159265358979323846264338327950288L;
  for (const double a : {1e-10, 0.01, 0.5, 1.0, 1.5, 2.0, 7.0, 15.99, 16.0, 16.5, 40.0, 200.0}) {
    const Real x = a;
    const Real expected = boost::math::lgamma(x) - (x * std::log(x) - x - std::log(x / two_pi) / 2);
    EXPECT_NEAR(stirling_error(a), static_cast<double>(expected),
                1e-15 * std::max(1.0, std::fabs(std::log(a))))
        << a;
  }
  EXPECT_NEAR(stirling_error(1e8), 1 / 12e8, 1e-24);
}

TEST(SpecialFunctions, Log1pMinusXKeepsItsDigitsNearZero) {
  EXPECT_NEAR(log1p_minus_x(1e-8) / (-0.5e-16 + 1e-24 / 3), 1.0, 1e-14);
  for (const double x : {-0.9, -0.26, -0.24, -0.01, 0.01, 0.24, 0.26, 5.0}) {
    const Real expected = std::log1p(static_cast<Real>(x)) - x;
    EXPECT_NEAR(log1p_minus_x(x) / static_cast<double>(expected), 1.0, 1e-14) << x;
  }
}

TEST(TruncatedNormal, DensityIsRightFarInTheTail) {
  // log density at low + t, mean 0, sd 1: -(low t + t^2 / 2) - log integral, where the normal itself is below
  // 1e-195.
  for (const double low : {8.0, 30.0, 1e3, 1e6}) {
    const Prior prior =
        Prior::from_terms({term("truncated_normal", {{"mean", {0}}, {"sd", {1}}, {"low", {low}}})});
    for (const double step : {0.0, 0.5, 2.0}) {
      const double theta = low + step / low;
      const Real t = static_cast<Real>(theta) - low;
      const double expected =
          static_cast<double>(-t * (low + t / 2) - std::log(tail_integral(low, INFINITY)));
      double log_prob = 0.0;
      prior.log_prob({&theta, 1, 1}, {&log_prob, 1});
      EXPECT_NEAR(log_prob, expected, 1e-12 * std::max(1.0, std::fabs(expected))) << low << " " << step;
    }
  }
}

TEST(TruncatedNormal, TailDrawsHaveTheirMeanAboveTheBound) {
  // Far out the excess over low is exponential with rate low: its mean is (1 - 1 / low^2 + ...) / low.
  const double low = 1e6;
  const Prior prior =
      Prior::from_terms({term("truncated_normal", {{"mean", {-low}}, {"sd", {1}}, {"low", {0}}})});
  const std::size_t n = 100000;
  Matrix<double> theta(n, 1);
  prior.sample(4, Stream::check, 0, theta);
  double sum = 0.0;
  for (const double value : theta.values()) {
    ASSERT_GT(value, 0.0);
    sum += value * low;
  }
  EXPECT_NEAR(sum / static_cast<double>(n), 1.0, 4 / std::sqrt(static_cast<double>(n)));
}

}  // namespace
}  // namespace nrec
