#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "nrec/core/error.h"
#include "nrec/inference/sample.h"
#include "nrec/inference/summarise.h"

namespace nrec {
namespace {

Prior uniform_prior(double low, double high, std::size_t dim = 1) {
  std::vector<PriorTerm> terms;
  for (std::size_t d = 0; d < dim; ++d)
    terms.push_back({{"t" + std::to_string(d)}, "uniform", {{"low", {low}}, {"high", {high}}}, "auto"});
  return Prior::from_terms(terms);
}

/// Kolmogorov-Smirnov distance of a column from a cdf.
template <class Cdf>
double ks_distance(const Matrix<double>& draws, std::size_t column, const Cdf& cdf) {
  std::vector<double> values;
  for (std::size_t i = 0; i < draws.rows(); ++i) values.push_back(draws(i, column));
  std::sort(values.begin(), values.end());
  double distance = 0;
  const double n = static_cast<double>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    distance = std::max({distance, cdf(values[i]) - static_cast<double>(i) / n,
                         static_cast<double>(i + 1) / n - cdf(values[i])});
  }
  return distance;
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }
constexpr double kCritical = 1.95;  // sqrt(n) KS at the 0.1 % level

class Rejection : public ::testing::Test {
 protected:
  ThreadPool pool_{2};
  RunContext run_{.pool = pool_};
};

TEST_F(Rejection, ConstantRatioReturnsThePriorAndNothingOutside) {
  const Prior prior = uniform_prior(0, 5);
  const Posterior posterior = Posterior::from_log_ratio(
      prior, [](MatrixView<const double>, std::span<double> r) { std::fill(r.begin(), r.end(), 0.7); });
  const PosteriorDraws draws = sample(posterior, {}, run_);
  ASSERT_EQ(draws.status, SamplingStatus::complete);
  ASSERT_EQ(draws.size(), 10000u);
  for (std::size_t i = 0; i < draws.size(); ++i) {
    ASSERT_GE(draws.theta(i, 0), 0.0);
    ASSERT_LE(draws.theta(i, 0), 5.0);
  }
  EXPECT_LT(100 * ks_distance(draws.theta, 0, [](double t) { return t / 5; }), kCritical);
  EXPECT_GT(100 * ks_distance(draws.theta, 0, [](double t) { return std::pow(t / 5, 1.05); }),
            kCritical);  // 5 % wrong is seen
}

TEST_F(Rejection, ExactRatioGivesTheExactPosterior) {
  // theta ~ N(0, 1), x ~ N(theta, 0.5^2), x_o = 1: posterior N(0.8, 0.2).
  const Prior prior = Prior::from_terms({{{"t"}, "normal", {{"mean", {0.0}}, {"sd", {1.0}}}, "auto"}});
  const Posterior posterior =
      Posterior::from_log_ratio(prior, [](MatrixView<const double> theta, std::span<double> r) {
        for (std::size_t i = 0; i < theta.rows; ++i)
          r[i] = -0.5 * (1 - theta(i, 0)) * (1 - theta(i, 0)) / 0.25;
      });
  const PosteriorDraws draws = sample(posterior, {}, run_);
  const auto cdf = [](double t) { return normal_cdf((t - 0.8) / std::sqrt(0.2)); };
  EXPECT_LT(100 * ks_distance(draws.theta, 0, cdf), kCritical);
  const auto table = summarise(draws);
  EXPECT_NEAR(table[0].mean, 0.8, 4 * std::sqrt(0.2 / 10000));
  EXPECT_NEAR(table[0].sd, std::sqrt(0.2), 4 * std::sqrt(0.2 / 20000));
  EXPECT_NEAR(table[0].quantile95, 0.8 + 1.6449 * std::sqrt(0.2), 0.03);
  EXPECT_EQ(table[0].ess, 10000);
  EXPECT_EQ(table[0].mcse_mean, table[0].sd / 100);
  EXPECT_NEAR(table[0].mcse_sd, std::sqrt(0.2 / 20000), 0.05 * std::sqrt(0.2 / 20000));
}

TEST_F(Rejection, KeepsTheWeightsOfTwoModes) {
  // Two modes at 1 and 4 with weights 0.974 and 0.026 under a flat prior.
  const Posterior posterior =
      Posterior::from_log_ratio(uniform_prior(0, 5), [](MatrixView<const double> theta, std::span<double> r) {
        for (std::size_t i = 0; i < theta.rows; ++i) {
          const double a = (theta(i, 0) - 1) / 0.05, b = (theta(i, 0) - 4) / 0.05;
          r[i] = std::log(0.974 * std::exp(-0.5 * a * a) + 0.026 * std::exp(-0.5 * b * b));
        }
      });
  const PosteriorDraws draws = sample(posterior, {}, run_);
  double right = 0;
  for (std::size_t i = 0; i < draws.size(); ++i) right += draws.theta(i, 0) > 2.5;
  EXPECT_NEAR(right / 10000, 0.026, 3 * std::sqrt(0.026 * 0.974 / 10000));
}

TEST_F(Rejection, StopsOnItsBudgetWithAForecastWhenThePosteriorIsNarrow) {
  // 1e-4 of the prior's width in three dimensions: acceptance near 1e-11.
  const Posterior posterior = Posterior::from_log_ratio(
      uniform_prior(0, 1, 3), [](MatrixView<const double> theta, std::span<double> r) {
        for (std::size_t i = 0; i < theta.rows; ++i) {
          r[i] = 0;
          for (std::size_t d = 0; d < 3; ++d) r[i] -= 0.5 * std::pow((theta(i, d) - 0.3) / 1e-4, 2);
        }
      });
  SamplingOptions options;
  options.max_evaluations = 2000000;
  const PosteriorDraws draws = sample_by_rejection(posterior, options, run_);
  EXPECT_EQ(draws.status, SamplingStatus::budget_spent);
  EXPECT_LT(draws.size(), 10u);
  EXPECT_NE(draws.message.find("the budget is spent (max_evaluations = 2000000"), std::string::npos)
      << draws.message;
  EXPECT_NE(draws.message.find(" s"), std::string::npos);
  EXPECT_EQ(std::get<double>(*draws.statistics.find("evaluations")), 2000000.0);
  options.max_seconds = 0.2;
  options.max_evaluations = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(sample_by_rejection(posterior, options, run_).status, SamplingStatus::budget_spent);
}

TEST_F(Rejection, ForecastsTheMissingDraws) {
  const Posterior posterior =
      Posterior::from_log_ratio(uniform_prior(0, 1), [](MatrixView<const double> theta, std::span<double> r) {
        for (std::size_t i = 0; i < theta.rows; ++i) r[i] = -0.5 * std::pow((theta(i, 0) - 0.5) / 1e-4, 2);
      });
  SamplingOptions options;
  options.max_evaluations = 300000;
  const PosteriorDraws draws = sample_by_rejection(posterior, options, run_);
  EXPECT_EQ(draws.status, SamplingStatus::budget_spent);
  EXPECT_GT(draws.size(), 10u);
  EXPECT_NE(draws.message.find("the missing draws would take about"), std::string::npos);
}

TEST_F(Rejection, SameDrawsForAnyNumberOfThreads) {
  const Posterior posterior = Posterior::from_log_ratio(
      uniform_prior(-1, 1, 2), [](MatrixView<const double> theta, std::span<double> r) {
        for (std::size_t i = 0; i < theta.rows; ++i)
          r[i] = -5 * (theta(i, 0) * theta(i, 0) + std::fabs(theta(i, 1)));
      });
  const PosteriorDraws first = sample(posterior, {}, run_);
  for (const int threads : {1, 3, 7}) {
    ThreadPool pool(threads);
    const PosteriorDraws other = sample(posterior, {}, RunContext{.pool = pool});
    EXPECT_EQ(first.theta, other.theta);
    EXPECT_EQ(first.log_ratio, other.log_ratio);
  }
}

TEST_F(Rejection, NonFiniteRatiosCountAsZeroDensityAndAreReported) {
  const Posterior posterior =
      Posterior::from_log_ratio(uniform_prior(0, 1), [](MatrixView<const double> theta, std::span<double> r) {
        for (std::size_t i = 0; i < theta.rows; ++i) r[i] = theta(i, 0) < 0.5 ? std::nan("") : 0.0;
      });
  const PosteriorDraws draws = sample(posterior, {}, run_);
  for (std::size_t i = 0; i < draws.size(); ++i) ASSERT_GE(draws.theta(i, 0), 0.5);
  EXPECT_GT(std::get<std::int64_t>(*draws.statistics.find("non_finite_log_ratios")), 1000);
}

TEST_F(Rejection, SaysWhenNothingHasDensity) {
  const Posterior posterior = Posterior::from_log_ratio(
      uniform_prior(0, 1),
      [](MatrixView<const double>, std::span<double> r) { std::fill(r.begin(), r.end(), std::nan("")); });
  SamplingOptions options;
  options.max_evaluations = 100000;
  const PosteriorDraws draws = sample(posterior, options, run_);
  EXPECT_EQ(draws.status, SamplingStatus::no_support);
  EXPECT_EQ(draws.size(), 0u);
  EXPECT_TRUE(summarise(draws).empty());
}

TEST_F(Rejection, EndsAtOnceWhenNoRatioIsANumber) {
  const Posterior posterior = Posterior::from_log_ratio(
      uniform_prior(0, 1),
      [](MatrixView<const double>, std::span<double> r) { std::fill(r.begin(), r.end(), std::nan("")); });
  const PosteriorDraws draws = sample_by_rejection(posterior, {}, run_);
  EXPECT_EQ(draws.status, SamplingStatus::no_support);
  EXPECT_LE(std::get<double>(*draws.statistics.find("evaluations")), 20000.0);
}

TEST_F(Rejection, SaysWhenTheBudgetEndsBeforeTheFirstBatch) {
  const Posterior posterior = Posterior::from_log_ratio(
      uniform_prior(0, 1),
      [](MatrixView<const double>, std::span<double> r) { std::fill(r.begin(), r.end(), 0.0); });
  SamplingOptions options;
  options.max_seconds = 1e-9;
  EXPECT_NE(sample_by_rejection(posterior, options, run_).message.find("before the first batch"),
            std::string::npos);
  options = {};
  options.max_evaluations = 100;  // half for the bound, half for candidates
  EXPECT_GT(sample_by_rejection(posterior, options, run_).size(), 10u);
}

TEST_F(Rejection, HonoursAStopRequest) {
  StopRequest stop;
  stop.request(15);
  RunContext run{.pool = pool_};
  run.stop = &stop;
  const Posterior posterior = Posterior::from_log_ratio(
      uniform_prior(0, 1),
      [](MatrixView<const double>, std::span<double> r) { std::fill(r.begin(), r.end(), 0.0); });
  EXPECT_EQ(sample(posterior, {}, run).status, SamplingStatus::stopped);
}

TEST_F(Rejection, WorksWithAPriorGivenBySamples) {
  Matrix<double> table(1000, 1);
  for (std::size_t i = 0; i < 1000; ++i) table(i, 0) = static_cast<double>(i) / 1000;
  const Posterior posterior = Posterior::from_log_ratio(
      Prior::from_samples({"t"}, table), [](MatrixView<const double> theta, std::span<double> r) {
        for (std::size_t i = 0; i < theta.rows; ++i)
          r[i] = theta(i, 0) < 0.25 ? 0.0 : -std::numeric_limits<double>::infinity();
      });
  const PosteriorDraws draws = sample(posterior, {}, run_);
  EXPECT_EQ(draws.status, SamplingStatus::complete);
  const auto table_row = summarise(draws)[0];
  EXPECT_NEAR(table_row.mean, 0.1245, 4 * 0.0722 / 100);
  std::vector<double> density(1);
  EXPECT_THROW(posterior.log_density(Matrix<double>(1, 1, {0.1}), density), UnsupportedError);
}

TEST(Sample, RefusesUnknownMethods) {
  ThreadPool pool(1);
  const Posterior posterior =
      Posterior::from_log_ratio(uniform_prior(0, 1), [](MatrixView<const double>, std::span<double>) {});
  SamplingOptions options;
  options.method = "guess";
  EXPECT_THROW(sample(posterior, options, RunContext{.pool = pool}), ConfigError);
  EXPECT_THROW(Posterior::from_log_ratio(uniform_prior(0, 1), {}), ConfigError);
}

}  // namespace
}  // namespace nrec
