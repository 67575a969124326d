#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "priors/tests/prior_cases.h"

namespace nrec {
namespace {

constexpr std::size_t kDraws = 100000;

std::vector<std::string> numbered_names(std::size_t dim) {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < dim; ++d) names.push_back("t" + std::to_string(d));
  return names;
}

Prior mvn(const std::string& keyword, std::vector<double> mean, const Matrix<double>& matrix) {
  const std::size_t dim = mean.size();
  return Prior::from_terms({term(
      "multivariate_normal", {{"mean", std::move(mean)}, {keyword, matrix.values()}}, numbered_names(dim))});
}

double log_prob_of(const Prior& prior, std::vector<double> theta) {
  double result = 0.0;
  prior.log_prob({theta.data(), 1, theta.size()}, {&result, 1});
  return result;
}

// Precision of the smoothness prior of a generalised linear model: an offset and nine filter taps,
//   F = D D + diag(sqrt(k / 9)), D first differences, precision of the taps F' F
Matrix<double> smoothness_precision() {
  constexpr std::size_t taps = 9;
  Matrix<double> f(taps, taps);
  for (std::size_t k = 0; k < taps; ++k) {
    f(k, k) = 1.0 + std::sqrt(static_cast<double>(k) / 9.0);
    if (k >= 1) f(k, k - 1) = -2.0;
    if (k >= 2) f(k, k - 2) = 1.0;
  }
  Matrix<double> precision(taps + 1, taps + 1);
  precision(0, 0) = 0.5;
  for (std::size_t i = 0; i < taps; ++i) {
    for (std::size_t j = 0; j < taps; ++j) {
      for (std::size_t k = 0; k < taps; ++k) precision(i + 1, j + 1) += f(k, i) * f(k, j);
    }
  }
  return precision;
}

// Gauss-Jordan without pivoting: independent of the Cholesky factor under test.
Matrix<double> inverse(Matrix<double> a) {
  const std::size_t n = a.rows();
  Matrix<double> result(n, n);
  for (std::size_t i = 0; i < n; ++i) result(i, i) = 1.0;
  for (std::size_t k = 0; k < n; ++k) {
    const double pivot = a(k, k);
    for (std::size_t j = 0; j < n; ++j) a(k, j) /= pivot, result(k, j) /= pivot;
    for (std::size_t i = 0; i < n; ++i) {
      const double factor = a(i, k);
      if (i == k || factor == 0.0) continue;
      for (std::size_t j = 0; j < n; ++j) a(i, j) -= factor * a(k, j), result(i, j) -= factor * result(k, j);
    }
  }
  return result;
}

TEST(MultivariateNormal, LogDensityMatchesTheClosedFormInTwoDimensions) {
  const double s1 = 2.0, s2 = 0.5, rho = -0.7;
  const Prior prior =
      mvn("covariance", {1.0, -1.0}, {2, 2, {s1 * s1, rho * s1 * s2, rho * s1 * s2, s2 * s2}});
  for (const auto& [x, y] : {std::pair{0.0, 0.0}, {1.0, -1.0}, {7.5, -3.25}, {-40.0, 12.0}}) {
    const double u = (x - 1.0) / s1, v = (y + 1.0) / s2;
    const double expected = -std::log(2 * std::numbers::pi * s1 * s2 * std::sqrt(1 - rho * rho)) -
                            (u * u - 2 * rho * u * v + v * v) / (2 * (1 - rho * rho));
    EXPECT_NEAR(log_prob_of(prior, {x, y}), expected, 1e-12 * std::max(1.0, std::fabs(expected)));
  }
  EXPECT_EQ(log_prob_of(prior, {std::nan(""), 0.0}), -HUGE_VAL);
  EXPECT_EQ(log_prob_of(prior, {HUGE_VAL, -HUGE_VAL}), -HUGE_VAL);
}

TEST(MultivariateNormal, SmoothnessPrecisionMatchesPublishedValues) {
  const Matrix<double> precision = smoothness_precision();
  EXPECT_NEAR(precision(1, 2), -4.666667, 1e-6);
  EXPECT_NEAR(precision(9, 9), 3.774507, 1e-6);
  const Prior prior = mvn("precision", std::vector<double>(10, 0.0), precision);
  const std::vector<double> theta = {1.215716,   2.1386335,  3.6156292,  3.3703978,  0.3342961,
                                     -1.5749966, -2.4357948, -2.1009881, -1.1669482, 0.3189116};
  EXPECT_NEAR(log_prob_of(prior, theta), -12.520675735448227, 1e-6);  // the parameters have 7 digits
}

TEST(MultivariateNormal, CovarianceAndPrecisionAgree) {
  const Matrix<double> precision = smoothness_precision();
  std::vector<double> mean(10);
  for (std::size_t d = 0; d < 10; ++d) mean[d] = 0.1 * static_cast<double>(d) - 0.3;
  const Prior by_precision = mvn("precision", mean, precision);
  const Prior by_covariance = mvn("covariance", mean, inverse(precision));
  Matrix<double> theta(50, 10);
  by_precision.sample(3, Stream::check, 0, theta);
  std::vector<double> a(50), b(50);
  by_precision.log_prob(theta, a);
  by_covariance.log_prob(theta, b);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_NEAR(a[i], b[i], 1e-11 * std::max(1.0, std::fabs(a[i])));
}

// Largest distance of the sampled means and covariances from the truth, in standard errors.
double worst_deviation(const Prior& prior, const std::vector<double>& mean,
                       const Matrix<double>& covariance) {
  const std::size_t dim = mean.size();
  Matrix<double> theta(kDraws, dim);
  prior.sample(11, Stream::check, 0, theta);
  const double n = static_cast<double>(kDraws);
  double worst = 0.0;
  for (std::size_t i = 0; i < dim; ++i) {
    double sum = 0.0;
    for (std::size_t row = 0; row < kDraws; ++row) sum += theta(row, i) - mean[i];
    worst = std::max(worst, std::fabs(sum / n) / std::sqrt(covariance(i, i) / n));
    for (std::size_t j = 0; j <= i; ++j) {
      double product = 0.0;
      for (std::size_t row = 0; row < kDraws; ++row)
        product += (theta(row, i) - mean[i]) * (theta(row, j) - mean[j]);
      const double variance = covariance(i, i) * covariance(j, j) + covariance(i, j) * covariance(i, j);
      worst = std::max(worst, std::fabs(product / n - covariance(i, j)) / std::sqrt(variance / n));
    }
  }
  return worst;
}

TEST(MultivariateNormal, MomentsAreWithinFourAndAHalfStandardErrors) {
  // 65 numbers per case: 4.5 standard errors is a chance of 4e-4 for all of them together.
  const Matrix<double> precision = smoothness_precision();
  const Matrix<double> covariance = inverse(precision);
  const std::vector<double> mean = {1, 2, 3, 4, 5, -1, -2, -3, -4, -5};
  EXPECT_LT(worst_deviation(mvn("precision", mean, precision), mean, covariance), 4.5);
  EXPECT_LT(worst_deviation(mvn("covariance", mean, covariance), mean, covariance), 4.5);
  // Negative control: the order of the columns reversed.
  Matrix<double> wrong = covariance;
  for (std::size_t i = 0; i < 10; ++i) {
    for (std::size_t j = 0; j < 10; ++j) wrong(i, j) = covariance(9 - i, 9 - j);
  }
  EXPECT_GT(worst_deviation(mvn("covariance", mean, wrong), mean, covariance), 4.5);
}

TEST(MultivariateNormal, PublishedVariancesOfTheSmoothnessPrior) {
  const Matrix<double> covariance = inverse(smoothness_precision());
  const double expected[] = {2, 1, 2.8125, 3.34868, 2.40891, 1.47951, 1.21096, 1.14321, 0.961586, 0.774907};
  for (std::size_t d = 0; d < 10; ++d) EXPECT_NEAR(covariance(d, d), expected[d], 6e-6 * expected[d]) << d;
}

TEST(MultivariateNormal, RowsArePureAndTermsConsumeInOrder) {
  const auto joint =
      term("multivariate_normal", {{"mean", {0, 0, 0}}, {"covariance", {2, 1, 0, 1, 2, 0, 0, 0, 1}}},
           {"a", "b", "c"});
  const Prior prior = Prior::from_terms({term("uniform", {{"low", {0}}, {"high", {1}}}, {"u"}), joint});
  Matrix<double> block(100, 4), one(1, 4);
  prior.sample(5, Stream::prior, 40, block);
  for (std::size_t i = 0; i < 100; ++i) {
    prior.sample(5, Stream::prior, 40 + i, one);
    for (std::size_t d = 0; d < 4; ++d) ASSERT_EQ(one(0, d), block(i, d));
  }
  RandomStream random(5, Stream::prior, 40);
  EXPECT_EQ(block(0, 0), random.uniform());
  EXPECT_EQ(block(0, 1), std::sqrt(2.0) * random.normal());
}

TEST(MultivariateNormal, OneDimensionIsTheNormal) {
  const Prior joint = mvn("covariance", {1.5}, {1, 1, {0.0625}});
  const Prior plain = Prior::from_terms({term("normal", {{"mean", {1.5}}, {"sd", {0.25}}})});
  EXPECT_NEAR(log_prob_of(joint, {1.125}), log_prob_of(plain, {1.125}), 1e-14);
}

}  // namespace
}  // namespace nrec
