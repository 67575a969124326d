#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "nrec/core/error.h"
#include "nrec/inference/sample.h"
#include "nrec/inference/summarise.h"

namespace nrec {
namespace {

class Slice : public ::testing::Test {
 protected:
  static Prior uniform(double low, double high, std::size_t dim, const char* transform = "auto") {
    std::vector<PriorTerm> terms;
    for (std::size_t d = 0; d < dim; ++d)
      terms.push_back({{"t" + std::to_string(d)}, "uniform", {{"low", {low}}, {"high", {high}}}, transform});
    return Prior::from_terms(terms);
  }
  static Posterior constant(const Prior& prior) {
    return Posterior::from_log_ratio(
        prior, [](MatrixView<const double>, std::span<double> r) { std::fill(r.begin(), r.end(), 0.4); });
  }
  static double statistic(const PosteriorDraws& draws, const char* name, std::size_t d) {
    return std::get<std::vector<double>>(*draws.statistics.find(name)).at(d);
  }

  ThreadPool pool_{2};
  RunContext run_{.pool = pool_};
};

TEST_F(Slice, ConstantRatioReturnsThePriorUnderEveryKindOfSupport) {
  struct Case {
    Prior prior;
    double mean, sd;
    double sd_error;  // Monte Carlo error of the sd in units of that of the mean: sqrt(kurtosis - 1) / 2
  };
  const auto one = [](const char* family,
                      std::vector<std::pair<std::string, std::vector<double>>> parameters) {
    return Prior::from_terms({{{"t"}, family, std::move(parameters), "auto"}});
  };
  const Case cases[] = {{uniform(0, 5, 1), 2.5, 5 / std::sqrt(12.0), std::sqrt(0.8) / 2},
                        {uniform(0, 5, 1, "identity"), 2.5, 5 / std::sqrt(12.0), std::sqrt(0.8) / 2},
                        {one("exponential", {{"rate", {2.0}}}), 0.5, 0.5, std::sqrt(8.0) / 2},
                        {one("normal", {{"mean", {3.0}}, {"sd", {0.1}}}), 3.0, 0.1, std::sqrt(2.0) / 2}};
  for (const Case& c : cases) {
    const PosteriorDraws draws = sample_by_slice(constant(c.prior), {}, run_);
    ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
    ASSERT_EQ(draws.size(), 10000u);
    EXPECT_EQ(draws.num_chains, 100u);
    const MarginalSummary row = summarise(draws)[0];
    EXPECT_GT(row.ess, 5000);
    EXPECT_NEAR(row.mean, c.mean, 4 * c.sd / std::sqrt(row.ess));
    EXPECT_NEAR(row.sd, c.sd, 0.06 * c.sd);
    EXPECT_NEAR(row.mcse_mean, row.sd / std::sqrt(row.ess), 0.1 * row.mcse_mean);
    EXPECT_NEAR(row.mcse_sd / row.mcse_mean, c.sd_error, 0.2 * c.sd_error);
    for (std::size_t i = 0; i < draws.size(); ++i) ASSERT_TRUE(c.prior.contains(draws.theta.row(i)));
  }
}

TEST_F(Slice, TenDimensionalGaussianHasItsMoments) {
  // theta ~ N(0, 0.1), x ~ N(theta, 0.1): posterior N(x/2, 0.05) per coordinate.
  std::vector<PriorTerm> terms;
  for (int d = 0; d < 10; ++d)
    terms.push_back(
        {{"t" + std::to_string(d)}, "normal", {{"mean", {0.0}}, {"sd", {std::sqrt(0.1)}}}, "auto"});
  const auto x = [](std::size_t d) { return 0.1 * static_cast<double>(d) - 0.4; };
  const Posterior posterior = Posterior::from_log_ratio(
      Prior::from_terms(terms), [&](MatrixView<const double> theta, std::span<double> r) {
        for (std::size_t i = 0; i < theta.rows; ++i) {
          r[i] = 0;
          for (std::size_t d = 0; d < 10; ++d)
            r[i] -= 0.5 * (x(d) - theta(i, d)) * (x(d) - theta(i, d)) / 0.1;
        }
      });
  const PosteriorDraws draws = sample_by_slice(posterior, {}, run_);
  ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
  const auto table = summarise(draws);
  for (std::size_t d = 0; d < 10; ++d) {
    EXPECT_LT(statistic(draws, "r_hat", d), 1.05);
    EXPECT_NEAR(table[d].mean, x(d) / 2, 4.5 * std::sqrt(0.05 / table[d].ess));
    EXPECT_NEAR(table[d].sd, std::sqrt(0.05), 4.5 * std::sqrt(0.05 / (2 * statistic(draws, "ess_tail", d))));
    EXPECT_GT(std::fabs(table[d].mean - (x(d) / 2 + 0.05)),
              4.5 * std::sqrt(0.05 / table[d].ess));  // a shift of a quarter sd is seen
  }
}

TEST_F(Slice, NarrowPosteriorsHaveTheirMoments) {
  // 1e-4 of the prior's width in three dimensions, where rejection accepts one in 1e11.
  const Posterior posterior =
      Posterior::from_log_ratio(uniform(0, 1, 3), [](MatrixView<const double> theta, std::span<double> r) {
        for (std::size_t i = 0; i < theta.rows; ++i) {
          r[i] = 0;
          for (std::size_t d = 0; d < 3; ++d) r[i] -= 0.5 * std::pow((theta(i, d) - 0.3) / 1e-4, 2);
        }
      });
  SamplingOptions options;
  options.method = "auto";
  const PosteriorDraws draws = sample(posterior, options, run_);
  EXPECT_EQ(draws.method, "slice");
  ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
  EXPECT_NE(draws.message.find("auto chose slice"), std::string::npos);
  for (const MarginalSummary& row : summarise(draws)) {
    EXPECT_NEAR(row.mean, 0.3, 4 * 1e-4 / std::sqrt(row.ess));
    EXPECT_NEAR(row.sd, 1e-4, 4e-6);
  }
}

TEST_F(Slice, FewDrawsAreJudgedByLongChains) {
  const auto modes = [](MatrixView<const double> theta, std::span<double> r) {
    for (std::size_t i = 0; i < theta.rows; ++i)
      r[i] = -0.5 * std::pow((std::fabs(theta(i, 0)) - 3) / 0.01, 2);
  };
  SamplingOptions options;
  options.num_samples = 100;
  const Posterior posterior = Posterior::from_log_ratio(uniform(-5, 5, 1), modes);
  const PosteriorDraws draws = sample_by_slice(posterior, options, run_);
  ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
  EXPECT_EQ(draws.size(), 100u);
  EXPECT_EQ(std::get<std::int64_t>(*draws.statistics.find("num_chains")), 24);
  EXPECT_EQ(std::get<std::int64_t>(*draws.statistics.find("thinning")) % 50,
            0);  // 250 sweeps, 5 draws a chain
  EXPECT_GT(statistic(draws, "r_hat", 0), 1.0);
  EXPECT_GT(summarise(draws)[0].ess, 60);
}

TEST_F(Slice, SameDrawsForAnyNumberOfThreadsAndExactCounts) {
  SamplingOptions options;
  options.num_samples = 250;  // not a multiple of 100 chains
  const PosteriorDraws first = sample_by_slice(constant(uniform(0, 1, 2)), options, run_);
  EXPECT_EQ(first.size(), 250u);
  EXPECT_EQ(first.log_ratio.size(), 250u);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    EXPECT_EQ(sample_by_slice(constant(uniform(0, 1, 2)), options, RunContext{.pool = pool}).theta,
              first.theta);
  }
}

TEST_F(Slice, EndsOnBudgetsStopsAndEmptySupport) {
  SamplingOptions options;
  options.max_evaluations = 150000;
  const PosteriorDraws partial = sample_by_slice(constant(uniform(0, 1, 1)), options, run_);
  EXPECT_EQ(partial.status, SamplingStatus::budget_spent);
  EXPECT_NE(partial.message.find("the rest would take about"), std::string::npos);
  StopRequest stop;
  stop.request(15);
  RunContext run{.pool = pool_};
  run.stop = &stop;
  EXPECT_EQ(sample_by_slice(constant(uniform(0, 1, 1)), {}, run).status, SamplingStatus::stopped);
  const Posterior nowhere = Posterior::from_log_ratio(
      uniform(0, 1, 1),
      [](MatrixView<const double>, std::span<double> r) { std::fill(r.begin(), r.end(), std::nan("")); });
  EXPECT_EQ(sample_by_slice(nowhere, {}, run_).status, SamplingStatus::no_support);
  Matrix<double> table(3, 1, {0.1, 0.2, 0.3});
  EXPECT_THROW(sample_by_slice(constant(Prior::from_samples({"t"}, table)), {}, run_), UnsupportedError);
}

TEST_F(Slice, AutoTakesRejectionWhereItIsQuick) {
  SamplingOptions options;
  options.method = "auto";
  EXPECT_EQ(sample(constant(uniform(0, 5, 2)), options, run_).method, "rejection");
}

}  // namespace
}  // namespace nrec
