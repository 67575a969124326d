#include <gtest/gtest.h>

#include <cmath>

#include "inference/tests/exact_posteriors.h"
#include "nrec/core/error.h"
#include "nrec/inference/evidence.h"
#include "nrec/inference/map_estimate.h"
#include "nrec/inference/sample.h"
#include "nrec/inference/summarise.h"

namespace nrec {
namespace {

// Prior: (a, b) normal with sd 1 and correlation 0.5, and c ~ uniform(-4, 4). Data: a + b + c = 1 and a - c = 0.5, each
// with noise 0.4. Everything but the walls of c, which are 9 sd away, is normal.
Posterior correlated() {
  const Prior prior = Prior::from_terms(
      {{{"a", "b"}, "multivariate_normal", {{"mean", {0, 0}}, {"covariance", {1, 0.5, 0.5, 1}}}, "auto"},
       {{"c"}, "uniform", {{"low", {-4}}, {"high", {4}}}, "auto"}});
  return testing::exact(prior,
                        [](MatrixView<const double> theta, std::span<double> r, MatrixView<double> d_theta) {
                          for (std::size_t i = 0; i < theta.rows; ++i) {
                            const double sum = theta(i, 0) + theta(i, 1) + theta(i, 2) - 1,
                                         difference = theta(i, 0) - theta(i, 2) - 0.5;
                            r[i] = -0.5 * (sum * sum + difference * difference) / 0.16;
                            d_theta(i, 0) = -(sum + difference) / 0.16;
                            d_theta(i, 1) = -sum / 0.16;
                            d_theta(i, 2) = -(sum - difference) / 0.16;
                          }
                        });
}

struct Normal {
  double mean, sd;
};

/// b and c given a: prior b | a ~ N(a / 2, 0.75), data b + c = 1 - a and c = a - 0.5.
///   precision [[p + w, w], [w, 2 w]] with p = 1 / 0.75, w = 1 / 0.16
std::pair<Normal, Normal> given_a(double a) {
  const double p = 1 / 0.75, w = 1 / 0.16;
  const double h_b = p * a / 2 + w * (1 - a), h_c = w * (1 - a) + w * (a - 0.5);
  const double det = (p + w) * 2 * w - w * w;
  return {{(2 * w * h_b - w * h_c) / det, std::sqrt(2 * w / det)},
          {((p + w) * h_c - w * h_b) / det, std::sqrt((p + w) / det)}};
}

class Fix : public ::testing::Test {
 protected:
  static SamplingOptions fixed_a(const char* method) {
    SamplingOptions options;
    options.method = method;
    options.fix = {"a=0.7"};
    return options;
  }
  ThreadPool pool_{2};
  RunContext run_{.pool = pool_};
};

TEST_F(Fix, EverySamplerDrawsTheConditional) {
  const auto [b, c] = given_a(0.7);
  const auto [wrong_b, wrong_c] = given_a(0.5);
  for (const char* method : {"rejection", "importance", "slice", "nuts", "auto"}) {
    const PosteriorDraws draws = sample(correlated(), fixed_a(method), run_);
    ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
    EXPECT_EQ(draws.names, (std::vector<std::string>{"a", "b", "c"}));
    const auto table = summarise(draws);
    for (std::size_t i = 0; i < draws.size(); ++i) ASSERT_EQ(draws.theta(i, 0), 0.7);
    EXPECT_EQ(table[0].sd, 0.0);
    EXPECT_EQ(table[0].mean, 0.7);
    EXPECT_TRUE(std::isnan(table[0].ess));
    for (const auto& [row, exact, wrong] : {std::tuple{1, b, wrong_b}, std::tuple{2, c, wrong_c}}) {
      const MarginalSummary& marginal = table[static_cast<std::size_t>(row)];
      EXPECT_NEAR(marginal.mean, exact.mean, 4 * exact.sd / std::sqrt(marginal.ess)) << method;
      EXPECT_NEAR(marginal.sd, exact.sd, 5 * exact.sd / std::sqrt(2 * marginal.ess)) << method;
      EXPECT_GT(std::fabs(marginal.mean - wrong.mean), 4 * exact.sd / std::sqrt(marginal.ess)) << method;
    }
  }
}

TEST_F(Fix, LeavesFixedColumnsOutOfRHat) {
  const PosteriorDraws draws = sample(correlated(), fixed_a("slice"), run_);
  for (const char* name : {"r_hat", "ess_bulk", "ess_tail"}) {
    const auto values = std::get<std::vector<double>>(*draws.statistics.find(name));
    ASSERT_EQ(values.size(), 3u);
    EXPECT_TRUE(std::isnan(values[0]));
    EXPECT_FALSE(std::isnan(values[1]));
    EXPECT_FALSE(std::isnan(values[2]));
  }
}

TEST_F(Fix, LogRatiosAreThoseOfAllParameters) {
  const Posterior posterior = correlated();
  const PosteriorDraws draws = sample(posterior, fixed_a("rejection"), run_);
  std::vector<double> log_ratio(draws.size());
  posterior.log_ratio(draws.theta, log_ratio);
  EXPECT_EQ(draws.log_ratio, log_ratio);
}

TEST_F(Fix, CountsNonFiniteRatios) {
  const Posterior half = Posterior::from_log_ratio(correlated().prior(),
                                                   [](MatrixView<const double> theta, std::span<double> r) {
                                                     for (std::size_t i = 0; i < theta.rows; ++i)
                                                       r[i] = theta(i, 2) < 0 ? std::nan("") : 0.0;
                                                   });
  const PosteriorDraws draws = sample(half, fixed_a("rejection"), run_);
  EXPECT_GT(std::get<std::int64_t>(*draws.statistics.find("non_finite_log_ratios")), 1000);
}

TEST_F(Fix, EvidenceAndModeAreThoseOfTheConditional) {
  const std::vector<FixedParameter> fixed = {{"a", 0.7}};
  const ConditionedPrior given = condition(correlated().prior(), fixed);
  const Posterior posterior = correlated().conditioned(given);
  const auto [b, c] = given_a(0.7);
  const MapEstimate map = find_map(posterior, {}, run_);
  EXPECT_NEAR(map.theta[0], b.mean, 5e-3);
  EXPECT_NEAR(map.theta[1], c.mean, 5e-3);
  // Z given a: b + c - 0.3 = e1, c - 0.2 = e2 with b ~ N(0.35, 0.75) and c flat at 1 / 8: integrate c, then b.
  //   b ~ N(0.1, 2 0.16) from both, so Z = 2 pi 0.16 / 8 N(0.35 - 0.1; 0, 0.75 + 0.32)
  const double exact =
      std::log(2 * M_PI * 0.16 / 8) - 0.5 * 0.25 * 0.25 / 1.07 - 0.5 * std::log(2 * M_PI * 1.07);
  const LogEvidence evidence = log_evidence(posterior, run_);
  EXPECT_TRUE(evidence.is_reliable());
  EXPECT_NEAR(evidence.log_z, exact, 4 * evidence.standard_error);
  EXPECT_GT(std::fabs(evidence.log_z - exact - 0.5 * std::log(1.07 / 0.82)), 4 * evidence.standard_error);
}

TEST_F(Fix, RefusesBeforeItDraws) {
  SamplingOptions options;
  options.fix = {"d=1"};
  EXPECT_THROW(sample(correlated(), options, run_), ConfigError);
  options.fix = {"c=4.5"};
  EXPECT_THROW(sample(correlated(), options, run_), DomainError);
  options.fix = {"c"};
  EXPECT_THROW(sample(correlated(), options, run_), ConfigError);
}

}  // namespace
}  // namespace nrec
