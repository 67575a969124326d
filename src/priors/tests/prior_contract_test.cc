// What every family of one parameter must hold; a new family joins by one line in prior_cases.cc.

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/quadrature/sinh_sinh.hpp>
#include <cmath>
#include <limits>

#include "priors/tests/prior_cases.h"

namespace nrec {
namespace {

constexpr std::size_t kDraws = 100000;
constexpr std::size_t kKolmogorovDraws = 40000;
// Kolmogorov's distribution: P(sqrt(n) D > x) = 2 sum_k (-1)^(k-1) exp(-2 k^2 x^2); 1.9495 is its 99.9 %
// point, 2 exp(-2 x^2) = 0.001.
constexpr double kKolmogorovCritical = 1.9495;
constexpr std::uint64_t kSeed = 20240607;

double log_prob_at(const Prior& prior, double theta) {
  double result = 0.0;
  prior.log_prob({&theta, 1, 1}, {&result, 1});
  return result;
}

double constrained(const Prior& prior, double u) {
  double theta = 0.0;
  prior.to_constrained({&u, 1, 1}, {&theta, 1, 1});
  return theta;
}

double unbounded(const Prior& prior, double theta) {
  double u = 0.0;
  prior.to_unbounded({&theta, 1, 1}, {&u, 1, 1});
  return u;
}

double log_jacobian(const Prior& prior, double u) {
  double result = 0.0;
  prior.log_abs_det_jacobian({&u, 1, 1}, {&result, 1});
  return result;
}

class PriorContract : public testing::TestWithParam<PriorCase> {
 protected:
  PriorContract() : prior_(Prior::from_terms({GetParam().term})) {}

  double quantile(double p) const { return static_cast<double>(GetParam().quantile(p)); }
  std::vector<double> draws(std::size_t n, std::uint64_t first_row = 0) const {
    Matrix<double> theta(n, 1);
    prior_.sample(kSeed, Stream::prior, first_row, theta);
    return theta.values();
  }
  // sqrt(n) times the largest distance between the empirical cdf and the cdf shifted by `shift`.
  double kolmogorov_statistic(double shift) const {
    std::vector<double> theta = draws(kKolmogorovDraws);
    std::sort(theta.begin(), theta.end());
    double distance = 0.0;
    for (std::size_t i = 0; i < kKolmogorovDraws; ++i) {
      const auto [low, high] = prior_.bounds(0);
      const double at = std::clamp(theta[i] + shift, low, high);
      const double p = static_cast<double>(GetParam().cdf(at));
      const double n = static_cast<double>(kKolmogorovDraws);
      distance = std::max({distance, p - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - p});
    }
    return distance * std::sqrt(static_cast<double>(kKolmogorovDraws));
  }

  Prior prior_;
};

TEST_P(PriorContract, LogDensityMatchesTheReferenceTo1e12) {
  for (const double p : {1e-9, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-4, 1 - 1e-9}) {
    const double theta = quantile(p);
    if (!prior_.contains({&theta, 1}) || theta == prior_.bounds(0).first || theta == prior_.bounds(0).second)
      continue;
    const double expected = static_cast<double>(std::log(GetParam().pdf(theta)));
    EXPECT_NEAR(log_prob_at(prior_, theta), expected, 1e-12 * std::max(1.0, std::fabs(expected)))
        << "theta = " << theta;
  }
}

TEST_P(PriorContract, DensityIntegratesToOne) {
  // Between quantiles, so that the quadrature cannot miss a narrow peak; the two tails hold 2e-12.
  const double edges[] = {1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7,  1e-6,     1e-5,     1e-4,
                          1e-3,  0.01,  0.1,   0.5,  0.9,  0.999, 1 - 1e-6, 1 - 1e-12};
  const auto density = [&](double theta) { return std::exp(log_prob_at(prior_, theta)); };
  double sum = 0.0;
  for (std::size_t i = 0; i + 1 < std::size(edges); ++i) {
    sum += boost::math::quadrature::gauss_kronrod<double, 61>::integrate(density, quantile(edges[i]),
                                                                         quantile(edges[i + 1]), 12, 1e-11);
  }
  EXPECT_NEAR(sum, 1.0, GetParam().integral_tolerance);
}

TEST_P(PriorContract, DensityInUnboundedSpaceIntegratesToOne) {
  if (GetParam().term.transform == "identity") {
    const auto [low, high] = prior_.bounds(0);
    const auto walled = [&](double u) {
      return std::exp(log_prob_at(prior_, constrained(prior_, u)) + log_jacobian(prior_, u));
    };
    EXPECT_NEAR((boost::math::quadrature::gauss_kronrod<double, 15>::integrate(walled, low, high)), 1.0,
                1e-12);
    EXPECT_EQ(walled(std::nextafter(low, -HUGE_VAL)), 0.0);
    return;
  }
  // Centred at the median and scaled by the quartiles, over the whole real line.
  const double centre = unbounded(prior_, quantile(0.5));
  const double scale = std::fabs(unbounded(prior_, quantile(0.75)) - unbounded(prior_, quantile(0.25)));
  const auto density = [&](double t) {
    const double u = centre + scale * t;
    return scale * std::exp(log_prob_at(prior_, constrained(prior_, u)) + log_jacobian(prior_, u));
  };
  EXPECT_NEAR(boost::math::quadrature::sinh_sinh<double>(12).integrate(density, 1e-10), 1.0,
              GetParam().integral_tolerance);
}

TEST_P(PriorContract, SamplesFollowTheCdf) { EXPECT_LT(kolmogorov_statistic(0.0), kKolmogorovCritical); }

TEST_P(PriorContract, SamplesDoNotFollowAShiftedCdf) {
  // Negative control: 5 % of the interquartile range.
  EXPECT_GT(kolmogorov_statistic(0.05 * (quantile(0.75) - quantile(0.25))), kKolmogorovCritical);
}

TEST_P(PriorContract, MomentsAndQuantilesAreWithinFourStandardErrors) {
  std::vector<double> theta = draws(kDraws);
  const double n = static_cast<double>(kDraws);
  if (GetParam().has_moments) {
    double sum = 0.0, sum2 = 0.0, sum4 = 0.0;
    for (const double value : theta) {
      const double z = (value - GetParam().mean) / GetParam().sd;
      sum += z;
      sum2 += z * z;
      sum4 += z * z * z * z;
    }
    EXPECT_NEAR(sum / n, 0.0, 4 / std::sqrt(n));
    EXPECT_NEAR(sum2 / n, 1.0, 4 * std::sqrt((sum4 / n - 1) / n));
  }
  for (const double p : {0.01, 0.25, 0.5, 0.75, 0.99}) {
    const double at = quantile(p);
    const double below =
        static_cast<double>(std::count_if(theta.begin(), theta.end(), [&](double v) { return v <= at; })) / n;
    EXPECT_NEAR(below, p, 4 * std::sqrt(p * (1 - p) / n));
  }
}

TEST_P(PriorContract, DrawsStayInsideTheSupportAndDoNotPileUp) {
  std::vector<double> theta = draws(kDraws);
  for (const double value : theta) {
    ASSERT_TRUE(prior_.contains({&value, 1})) << value;
    ASSERT_TRUE(std::isfinite(log_prob_at(prior_, value))) << value;
  }
  const auto [low, high] = prior_.bounds(0);
  EXPECT_LE(std::count(theta.begin(), theta.end(), low), 1);
  EXPECT_LE(std::count(theta.begin(), theta.end(), high), 1);
}

TEST_P(PriorContract, RowsArePureFunctionsOfTheirKey) {
  const std::vector<double> block = draws(300, 1000);
  for (std::size_t i = 0; i < block.size(); ++i) ASSERT_EQ(draws(1, 1000 + i)[0], block[i]) << i;
  const std::vector<double> later = draws(100, 1200);
  EXPECT_TRUE(std::equal(later.begin(), later.end(), block.begin() + 200));
  Matrix<double> other(300, 1);
  prior_.sample(kSeed + 1, Stream::prior, 1000, other);
  EXPECT_NE(other.values(), block);
  prior_.sample(kSeed, Stream::check, 1000, other);
  EXPECT_NE(other.values(), block);
}

TEST_P(PriorContract, RoundTripsReturnTheSameNumber) {
  for (const double p : {0.001, 0.05, 0.2, 0.5, 0.8, 0.95, 0.999}) {
    const double theta = quantile(p);
    const double back = constrained(prior_, unbounded(prior_, theta));
    EXPECT_NEAR(back, theta, 1e-12 * std::max(std::fabs(theta), quantile(0.75) - quantile(0.25))) << p;
  }
}

TEST_P(PriorContract, EdgesOfBothSpacesStayFinite) {
  const auto [low, high] = prior_.bounds(0);
  for (const double bound : {low, high}) {
    if (!std::isfinite(bound)) continue;
    EXPECT_TRUE(std::isfinite(unbounded(prior_, bound)));
    EXPECT_EQ(constrained(prior_, unbounded(prior_, bound)), bound);
    EXPECT_TRUE(prior_.contains({&bound, 1}));
    const double outside = std::nextafter(bound, bound == low ? -INFINITY : INFINITY);
    EXPECT_FALSE(prior_.contains({&outside, 1}));
    EXPECT_EQ(log_prob_at(prior_, outside), -INFINITY);
  }
  for (const double u : {-1e4, -750.0, -700.0, -60.0, 60.0, 700.0, 750.0, 1e4}) {
    const double theta = constrained(prior_, u);
    const double jacobian = log_jacobian(prior_, u);
    EXPECT_TRUE(std::isfinite(jacobian) || (u > 709.0 && jacobian == -INFINITY)) << u;
    // What a sampler sees far out is never more than what it sees at the median.
    const double middle = unbounded(prior_, quantile(0.5));
    EXPECT_LT(log_prob_at(prior_, theta) + jacobian,
              log_prob_at(prior_, quantile(0.5)) + log_jacobian(prior_, middle))
        << u;
    ASSERT_FALSE(std::isnan(theta)) << u;
    if (GetParam().term.transform == "auto") {
      EXPECT_TRUE(prior_.contains({&theta, 1})) << u;
    }
  }
  for (const double theta : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_EQ(log_prob_at(prior_, theta), -INFINITY);
    EXPECT_FALSE(prior_.contains({&theta, 1}));
  }
  EXPECT_TRUE(std::isnan(unbounded(prior_, std::nan(""))));
  EXPECT_TRUE(std::isnan(constrained(prior_, std::nan(""))));
  EXPECT_FALSE(std::isnan(log_prob_at(prior_, std::numeric_limits<double>::max())));
  EXPECT_FALSE(std::isnan(log_prob_at(prior_, std::numeric_limits<double>::denorm_min())));
}

TEST_P(PriorContract, JacobianMatchesFiniteDifferences) {
  for (const double p : {0.05, 0.3, 0.5, 0.7, 0.95}) {
    const double u = unbounded(prior_, quantile(p));
    const double h = 1e-4 * std::max(1.0, std::fabs(u));
    // Offsets from the bound keep the digits of a support that lies far from 0.
    const double slope = (constrained(prior_, u + h) - constrained(prior_, u - h)) / (2 * h);
    const double rounding =
        4 * std::numeric_limits<double>::epsilon() * std::fabs(quantile(p)) / (2 * h) / std::fabs(slope);
    EXPECT_NEAR(log_jacobian(prior_, u), std::log(std::fabs(slope)), 1e-6 + rounding) << "u = " << u;
  }
}

TEST_P(PriorContract, NamesAndTermsRoundTrip) {
  EXPECT_EQ(prior_.names(), std::vector<std::string>{"a"});
  EXPECT_EQ(prior_.terms(), std::vector<PriorTerm>{GetParam().term});
  const Prior again = Prior::from_terms(prior_.terms());
  const double theta = quantile(0.4);
  EXPECT_EQ(log_prob_at(again, theta), log_prob_at(prior_, theta));
  EXPECT_TRUE(prior_.has_density());
  EXPECT_TRUE(prior_.samples().empty());
}

INSTANTIATE_TEST_SUITE_P(Families, PriorContract, testing::ValuesIn(prior_cases()),
                         [](const testing::TestParamInfo<PriorCase>& c) { return c.param.label; });

TEST(PriorCases, CoverEveryFamilyOfOneParameter) {
  for (const PriorFamilyInfo& info : prior_families()) {
    if (info.joint) continue;
    const auto& cases = prior_cases();
    EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [&](const PriorCase& c) {
      return c.term.family == info.family;
    })) << info.family;
  }
}

}  // namespace
}  // namespace nrec
