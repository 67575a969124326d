#include "nrec/diagnostics/uniformity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nrec/core/error.h"
#include "nrec/core/random.h"
#include "nrec/diagnostics/visible_errors.h"

namespace nrec {
namespace {

double normal_below(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

/// Ranks Phi(k z + d) of n evenly spread standard normal z.
std::vector<double> normal_ranks(std::size_t n, double k, double d) {
  std::vector<double> ranks;
  for (std::size_t i = 0; i < n; ++i)
    ranks.push_back(
        normal_below(k * normal_quantile((static_cast<double>(i) + 0.5) / static_cast<double>(n)) + d));
  return ranks;
}

std::vector<double> uniforms(std::size_t n, std::uint64_t row) {
  RandomStream random(5, Stream::check, row);
  std::vector<double> values(n);
  for (double& u : values) u = random.uniform();
  return values;
}

TEST(ChiSquared, HasTheClosedFormsOfFewDegrees) {
  for (const double x : {0.01, 0.5, 2.0, 7.0, 40.0, 1000.0}) {
    EXPECT_NEAR(chi_squared_p_value(x, 1) / std::erfc(std::sqrt(0.5 * x)), 1.0, 1e-10) << x;
    EXPECT_NEAR(chi_squared_p_value(x, 2) / std::exp(-0.5 * x), 1.0, 1e-10) << x;
    EXPECT_NEAR(chi_squared_p_value(x, 4) / (std::exp(-0.5 * x) * (1.0 + 0.5 * x)), 1.0, 1e-10) << x;
  }
  EXPECT_EQ(chi_squared_p_value(0.0, 3), 1.0);
}

TEST(Normal, QuantileInvertsTheDistribution) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);
  EXPECT_NEAR(normal_quantile(1e-10), -6.361340902404056, 1e-9);
  EXPECT_NEAR(normal_quantile(0.5), 0.0, 1e-12);
  EXPECT_TRUE(std::isinf(normal_quantile(1.0)));
  EXPECT_NEAR(normal_p_value(-1.959963984540054), 0.05, 1e-12);
}

TEST(Binomial, IntervalCutsBothTails) {
  // P(X <= 1) = 0.0107, P(X <= 2) = 0.0547, P(X <= 7) = 0.9453, P(X <= 8) = 0.9893 for ten coins.
  EXPECT_EQ(binomial_interval(10, 0.5, 0.95), std::pair(0.2, 0.8));
  EXPECT_EQ(binomial_interval(7, 0.0, 0.95), std::pair(0.0, 0.0));
  EXPECT_EQ(binomial_interval(7, 1.0, 0.95), std::pair(1.0, 1.0));
  const auto [low, high] = binomial_interval(100000, 0.9, 0.95);
  EXPECT_NEAR(low, 0.9 - 1.96 * std::sqrt(0.09 / 1e5), 2e-5);
  EXPECT_NEAR(high, 0.9 + 1.96 * std::sqrt(0.09 / 1e5), 2e-5);
}

TEST(Uniformity, KnowsShiftAndWidthOfNormalPosteriors) {
  for (const double width : {0.5, 0.8, 1.0, 1.25, 2.0})
    EXPECT_NEAR(test_uniformity(normal_ranks(20000, 1.0 / width, 0.0)).width(), width, 1e-3) << width;
  for (const double shift : {-1.0, 0.0, 0.5})
    EXPECT_NEAR(test_uniformity(normal_ranks(20000, 1.0, shift)).shift(), shift, 1e-3) << shift;
}

TEST(Uniformity, HasUniformPValuesForUniformRanks) {
  // Shares of p-values below 0.1 over 2,000 sets: standard error 0.0067.
  int mean = 0, spread = 0, chi_squared = 0, ks = 0;
  for (std::uint64_t row = 0; row < 2000; ++row) {
    const UniformityTest test = test_uniformity(uniforms(300, row));
    mean += test.mean_p_value < 0.1;
    spread += test.spread_p_value < 0.1;
    chi_squared += test.chi_squared_p_value < 0.1;
    ks += test.ks_p_value < 0.1;
    EXPECT_EQ(test.counts.size(), 20u);
  }
  for (const int count : {mean, spread, chi_squared, ks}) EXPECT_NEAR(count / 2000.0, 0.1, 4 * 0.0067);
}

TEST(Uniformity, SeesWhatIsNotUniform) {
  std::vector<double> squared = uniforms(1000, 1);
  for (double& u : squared) u *= u;
  const UniformityTest test = test_uniformity(squared);
  EXPECT_LT(test.mean_p_value, 1e-6);
  EXPECT_LT(test.chi_squared_p_value, 1e-6);
  EXPECT_LT(test.ks_p_value, 1e-6);
  EXPECT_LT(test_uniformity(normal_ranks(1000, 1.25, 0.0)).spread_p_value, 1e-4);
}

TEST(Uniformity, RefusesWhatIsNoRank) {
  EXPECT_THROW(test_uniformity({}), ShapeError);
  try {
    test_uniformity(std::vector<double>{0.5, 1.5});
    FAIL() << "no error";
  } catch (const DomainError& error) {
    EXPECT_STREQ(error.what(), "test_uniformity: ranks[1] = 1.5 must be in [0, 1]");
  }
  EXPECT_THROW(test_uniformity(std::vector<double>{std::nan("")}), DomainError);
}

TEST(EcdfBand, HoldsUniformNumbersAtTheStatedRate) {
  const std::vector<double> levels = {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95};
  const EcdfBand band = ecdf_band(200, levels, 0.95, 3);
  const auto is_inside = [&](const std::vector<double>& values) {
    const std::vector<double> curve = ecdf(values, levels);
    for (std::size_t g = 0; g < levels.size(); ++g) {
      if (curve[g] < band.low[g] || curve[g] > band.high[g]) return false;
    }
    return true;
  };
  int inside = 0, narrow_inside = 0;
  for (std::uint64_t row = 0; row < 1000; ++row) {
    std::vector<double> values = uniforms(200, row);
    inside += is_inside(values);
    for (double& u : values) u = normal_below(1.67 * normal_quantile(u));
    narrow_inside += is_inside(values);
  }
  // Standard errors: 0.0069 of the share and 0.005 of the band's own calibration; binomial steps make it wider, not narrower.
  EXPECT_GE(inside / 1000.0, 0.95 - 4 * 0.0085);
  EXPECT_LE(inside / 1000.0, 0.985);
  EXPECT_LT(narrow_inside, 100);
}

TEST(EcdfBand, RefusesLevelsThatAreNone) {
  EXPECT_THROW(ecdf_band(0, std::vector<double>{0.5}, 0.95, 1), DomainError);
  EXPECT_THROW(ecdf_band(10, std::vector<double>{1.0}, 0.95, 1), DomainError);
  EXPECT_THROW(ecdf_band(10, std::vector<double>{0.5}, 1.0, 1), DomainError);
}

TEST(Holm, CorrectsForTheNumberOfTests) {
  const std::vector<double> adjusted = holm_adjusted(std::vector<double>{0.01, 0.04, std::nan(""), 0.03});
  EXPECT_DOUBLE_EQ(adjusted[0], 0.03);
  EXPECT_DOUBLE_EQ(adjusted[1], 0.06);  // not 0.04: the smaller one before it has 0.06
  EXPECT_TRUE(std::isnan(adjusted[2]));
  EXPECT_DOUBLE_EQ(adjusted[3], 0.06);
}

TEST(VisibleErrors, AreSeenInNineOfTenCases) {
  const VisibleErrors visible = visible_errors(400, 0.001, 0.0);
  int shift = 0, narrow = 0;
  for (std::uint64_t row = 0; row < 500; ++row) {
    std::vector<double> shifted = uniforms(400, row), narrowed = shifted;
    for (double& u : shifted) u = normal_below(normal_quantile(u) + visible.shift);
    for (double& u : narrowed) u = normal_below(normal_quantile(u) / visible.narrow);
    shift += test_uniformity(shifted).mean_p_value < 0.001;
    narrow += test_uniformity(narrowed).spread_p_value < 0.001;
  }
  EXPECT_NEAR(shift / 500.0, 0.9, 0.06);
  EXPECT_NEAR(narrow / 500.0, 0.9, 0.06);
  EXPECT_GT(visible_errors(400, 0.001, 0.5).shift, 1.8 * visible.shift);
  EXPECT_TRUE(std::isinf(visible_errors(400, 0.001, 1.0).shift));
  EXPECT_THROW(visible_errors(10, 0.0, 0.0), DomainError);
  EXPECT_THROW(visible_errors(10, 0.01, 1.5), DomainError);
}

}  // namespace
}  // namespace nrec
