#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>

#include "inference/tests/exact_posteriors.h"
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

/// A normal of the given sd around 0.3 in every coordinate of the unit cube.
Posterior narrow(std::size_t dim, double sd) {
  return Posterior::from_log_ratio(uniform_prior(0, 1, dim),
                                   [sd](MatrixView<const double> theta, std::span<double> r) {
                                     for (std::size_t i = 0; i < theta.rows; ++i) {
                                       r[i] = 0;
                                       for (std::size_t d = 0; d < theta.cols; ++d)
                                         r[i] -= 0.5 * std::pow((theta(i, d) - 0.3) / sd, 2);
                                     }
                                   });
}

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

class Importance : public ::testing::Test {
 protected:
  static double number(const PosteriorDraws& draws, const char* name) {
    const RecordValue* value = draws.statistics.find(name);
    if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
    return std::get<double>(*value);
  }

  ThreadPool pool_{2};
  RunContext run_{.pool = pool_};
};

TEST_F(Importance, ConstantRatioReturnsThePriorWithoutCopies) {
  const Posterior posterior = Posterior::from_log_ratio(
      uniform_prior(0, 5),
      [](MatrixView<const double>, std::span<double> r) { std::fill(r.begin(), r.end(), 0.7); });
  const PosteriorDraws draws = sample_by_importance(posterior, {}, run_);
  ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
  ASSERT_EQ(draws.size(), 10000u);
  EXPECT_EQ(number(draws, "distinct_draws"), 10000);
  EXPECT_EQ(number(draws, "effective_draws"), 10000);
  EXPECT_NEAR(number(draws, "ess"), number(draws, "prior_draws"), 1e-6);
  EXPECT_EQ(number(draws, "k_hat"), -std::numeric_limits<double>::infinity());
  EXPECT_NEAR(number(draws, "log_z"), 0.7, 1e-12);
  EXPECT_LT(100 * ks_distance(draws.theta, 0, [](double t) { return t / 5; }), kCritical);
  EXPECT_GT(100 * ks_distance(draws.theta, 0, [](double t) { return std::pow(t / 5, 1.05); }),
            kCritical);  // 5 % wrong is seen
}

TEST_F(Importance, ExactRatioGivesTheExactPosterior) {
  // theta ~ N(0, 1), x ~ N(theta, 0.5^2), x_o = 1: posterior N(0.8, 0.2).
  const Prior prior = Prior::from_terms({{{"t"}, "normal", {{"mean", {0.0}}, {"sd", {1.0}}}, "auto"}});
  const Posterior posterior =
      Posterior::from_log_ratio(prior, [](MatrixView<const double> theta, std::span<double> r) {
        for (std::size_t i = 0; i < theta.rows; ++i)
          r[i] = -0.5 * (1 - theta(i, 0)) * (1 - theta(i, 0)) / 0.25;
      });
  const PosteriorDraws draws = sample_by_importance(posterior, {}, run_);
  ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
  const auto row = summarise(draws)[0];
  EXPECT_EQ(row.ess, number(draws, "effective_draws"));
  EXPECT_GE(row.ess, 9000);
  EXPECT_NEAR(row.mean, 0.8, 4 * std::sqrt(0.2 / row.ess));
  EXPECT_NEAR(row.sd, std::sqrt(0.2), 4 * std::sqrt(0.2 / (2 * row.ess)));
  EXPECT_GT(std::fabs(row.mean - (0.8 + 0.05)), 4 * std::sqrt(0.2 / row.ess));  // a ninth of the sd is seen
  const auto cdf = [](double shift) {
    return [shift](double t) { return normal_cdf((t - 0.8 - shift) / std::sqrt(0.2)); };
  };
  EXPECT_LT(100 * ks_distance(draws.theta, 0, cdf(0)), kCritical);
  EXPECT_GT(100 * ks_distance(draws.theta, 0, cdf(0.05)), kCritical);
  for (std::size_t i = 0; i < draws.size(); ++i)
    ASSERT_EQ(draws.log_ratio[i], -0.5 * (1 - draws.theta(i, 0)) * (1 - draws.theta(i, 0)) / 0.25);
}

TEST_F(Importance, FiveDimensionsNeedMoreDrawsAndCountTheirCopies) {
  const PosteriorDraws draws = sample_by_importance(narrow(5, 0.1), {}, run_);
  ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
  std::set<double> distinct;
  for (std::size_t i = 0; i < draws.size(); ++i) distinct.insert(draws.theta(i, 0));
  EXPECT_EQ(static_cast<double>(distinct.size()), number(draws, "distinct_draws"));
  EXPECT_LT(distinct.size(), 10000u);
  EXPECT_GE(number(draws, "effective_draws"), 8900);  // 9,000 expected
  EXPECT_NE(draws.message.find(std::to_string(distinct.size()) + " distinct"), std::string::npos);
  for (const MarginalSummary& row : summarise(draws)) {
    // The unit interval cuts the normal 3 sd below its mean.
    EXPECT_NEAR(row.mean, 0.3 + 0.1 * 0.00444, 4 * 0.1 / std::sqrt(row.ess));
    EXPECT_GT(std::fabs(row.mean - 0.31), 4 * 0.1 / std::sqrt(row.ess));  // a tenth of the sd is seen
  }
}

TEST_F(Importance, KeepsTheWeightsOfTwoModes) {
  const Posterior posterior =
      Posterior::from_log_ratio(uniform_prior(0, 5), [](MatrixView<const double> theta, std::span<double> r) {
        for (std::size_t i = 0; i < theta.rows; ++i) {
          const double a = (theta(i, 0) - 1) / 0.05, b = (theta(i, 0) - 4) / 0.05;
          r[i] = std::log(0.974 * std::exp(-0.5 * a * a) + 0.026 * std::exp(-0.5 * b * b));
        }
      });
  const PosteriorDraws draws = sample_by_importance(posterior, {}, run_);
  ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
  double right = 0;
  for (std::size_t i = 0; i < draws.size(); ++i) right += draws.theta(i, 0) > 2.5;
  EXPECT_NEAR(right / 10000, 0.026, 4 * std::sqrt(0.026 * 0.974 / number(draws, "effective_draws")));
}

TEST_F(Importance, SaysThatWeightsOfANarrowPosteriorAreUnreliable) {
  SamplingOptions options;
  options.max_evaluations = 1000000;
  const PosteriorDraws draws = sample_by_importance(narrow(5, 0.004), options, run_);
  EXPECT_EQ(draws.status, SamplingStatus::weights_unreliable);
  EXPECT_GT(number(draws, "k_hat"), number(draws, "k_hat_threshold"));
  EXPECT_EQ(number(draws, "k_hat_threshold"), 0.7);
  EXPECT_NE(
      draws.message.find("the weights are unreliable: k-hat is above 0.7; the posterior is far narrower"),
      std::string::npos)
      << draws.message;
  EXPECT_EQ(number(draws, "evaluations"), 1000000.0);
  EXPECT_LT(draws.size(), 100u);
  // The wide one of the same dimension has no such tail.
  EXPECT_LT(number(sample_by_importance(narrow(5, 0.1), options, run_), "k_hat"), 0.5);
}

TEST_F(Importance, LeavesFewerDrawsWhenTheBudgetEnds) {
  SamplingOptions options;
  options.max_evaluations = 200000;
  const PosteriorDraws draws = sample_by_importance(narrow(2, 0.05), options, run_);
  EXPECT_EQ(draws.status, SamplingStatus::budget_spent) << draws.message;
  EXPECT_LT(draws.size(), 10000u);
  EXPECT_GT(draws.size(), 1000u);
  EXPECT_GE(number(draws, "effective_draws"), 0.85 * static_cast<double>(draws.size()));
  EXPECT_NE(draws.message.find("the budget is spent (max_evaluations = 200000, max_seconds = 600"),
            std::string::npos)
      << draws.message;
  EXPECT_NE(draws.message.find("the missing draws would take about"), std::string::npos);
  const auto row = summarise(draws)[0];
  EXPECT_NEAR(row.mean, 0.3, 4 * 0.05 / std::sqrt(row.ess));
  options.num_samples = 1000000;  // a tenth of these would need an effective sample size of 100,000
  const PosteriorDraws few = sample_by_importance(narrow(2, 0.05), options, run_);
  EXPECT_EQ(few.status, SamplingStatus::weights_unreliable);
  EXPECT_NE(few.message.find("the effective sample size is below a tenth of the draws asked for"),
            std::string::npos)
      << few.message;
}

TEST_F(Importance, EndsOnSecondsAndStopRequests) {
  SamplingOptions options;
  options.max_seconds = 0.2;
  options.max_evaluations = std::numeric_limits<std::int64_t>::max();
  const PosteriorDraws draws = sample_by_importance(narrow(5, 0.004), options, run_);
  EXPECT_EQ(draws.status, SamplingStatus::weights_unreliable);
  StopRequest stop;
  stop.request(15);
  RunContext run{.pool = pool_};
  run.stop = &stop;
  const PosteriorDraws stopped = sample_by_importance(narrow(1, 0.1), {}, run);
  EXPECT_EQ(stopped.status, SamplingStatus::stopped);
  EXPECT_EQ(stopped.size(), 0u);
  EXPECT_NE(stopped.message.find("stopped on request"), std::string::npos);
  options.max_seconds = 1e-9;
  const PosteriorDraws none = sample_by_importance(narrow(1, 0.1), options, run_);
  EXPECT_EQ(none.status, SamplingStatus::budget_spent);
  EXPECT_NE(none.message.find("before the first batch"), std::string::npos);
}

TEST_F(Importance, SameDrawsForAnyNumberOfThreads) {
  const PosteriorDraws first = sample_by_importance(narrow(3, 0.1), {}, run_);
  for (const int threads : {1, 3, 7}) {
    ThreadPool pool(threads);
    const PosteriorDraws other = sample_by_importance(narrow(3, 0.1), {}, RunContext{.pool = pool});
    EXPECT_EQ(first.theta, other.theta);
    EXPECT_EQ(first.log_ratio, other.log_ratio);
  }
}

TEST_F(Importance, NonFiniteRatiosCountAsZeroDensityAndAreReported) {
  const Posterior half =
      Posterior::from_log_ratio(uniform_prior(0, 1), [](MatrixView<const double> theta, std::span<double> r) {
        for (std::size_t i = 0; i < theta.rows; ++i) r[i] = theta(i, 0) < 0.5 ? std::nan("") : 0.0;
      });
  const PosteriorDraws draws = sample_by_importance(half, {}, run_);
  EXPECT_EQ(draws.status, SamplingStatus::complete);
  for (std::size_t i = 0; i < draws.size(); ++i) ASSERT_GE(draws.theta(i, 0), 0.5);
  EXPECT_GT(number(draws, "non_finite_log_ratios"), 1000);
  EXPECT_NEAR(number(draws, "log_z"), std::log(0.5), 4 * number(draws, "log_z_se"));
  const Posterior nowhere = Posterior::from_log_ratio(
      uniform_prior(0, 1),
      [](MatrixView<const double>, std::span<double> r) { std::fill(r.begin(), r.end(), std::nan("")); });
  const PosteriorDraws none = sample_by_importance(nowhere, {}, run_);
  EXPECT_EQ(none.status, SamplingStatus::no_support);
  EXPECT_EQ(none.size(), 0u);
  EXPECT_LE(number(none, "evaluations"), 200000.0);
  EXPECT_NE(none.message.find("check the observation"), std::string::npos);
}

TEST_F(Importance, WorksWithAPriorGivenBySamples) {
  Matrix<double> table(1000, 1);
  for (std::size_t i = 0; i < 1000; ++i) table(i, 0) = static_cast<double>(i) / 1000;
  const Posterior posterior = Posterior::from_log_ratio(
      Prior::from_samples({"t"}, table), [](MatrixView<const double> theta, std::span<double> r) {
        for (std::size_t i = 0; i < theta.rows; ++i)
          r[i] = theta(i, 0) < 0.25 ? 0.0 : -std::numeric_limits<double>::infinity();
      });
  const PosteriorDraws draws = sample_by_importance(posterior, {}, run_);
  EXPECT_EQ(draws.status, SamplingStatus::complete) << draws.message;
  EXPECT_NEAR(summarise(draws)[0].mean, 0.1245, 4 * 0.0722 / 100);
}

/// Counts evaluations beside the sampler's own count.
struct Counted {
  std::shared_ptr<std::int64_t> rows = std::make_shared<std::int64_t>(0);
  Posterior posterior;
  explicit Counted(const Posterior& inner)
      : posterior(Posterior::from_log_ratio(
            inner.prior(), [inner, counter = rows](MatrixView<const double> theta, std::span<double> r) {
              *counter += static_cast<std::int64_t>(theta.rows);
              inner.log_ratio(theta, r);
            })) {}
};

class Automatic : public Importance {};

TEST_F(Automatic, GoesOnFromItsPilotWithRejection) {
  // Acceptance near 0.006: 3,000 draws in the pilot, all within 25 pilots.
  const Counted counted(narrow(2, 0.033));
  const PosteriorDraws draws = sample(counted.posterior, {}, run_);
  EXPECT_EQ(draws.method, "rejection");
  EXPECT_EQ(draws.status, SamplingStatus::complete) << draws.message;
  EXPECT_NE(draws.message.find("auto chose rejection because it accepts 0.00"), std::string::npos)
      << draws.message;
  EXPECT_EQ(static_cast<double>(*counted.rows), number(draws, "evaluations"));
  const double alone = number(sample_by_rejection(narrow(2, 0.033), {}, run_), "evaluations");
  EXPECT_LE(number(draws, "evaluations"), alone + 65536);
  EXPECT_GE(number(draws, "evaluations"), 1000000);  // more than the pilot
}

TEST_F(Automatic, TakesImportanceBetweenRejectionAndSliceAndReusesThePilot) {
  // Ten dimensions: rejection accepts 1e-4, the weights carry the draws much earlier.
  const Counted counted(narrow(8, 0.17));
  const PosteriorDraws draws = sample(counted.posterior, {}, run_);
  ASSERT_EQ(draws.method, "importance") << draws.message;
  EXPECT_EQ(draws.status, SamplingStatus::complete) << draws.message;
  EXPECT_NE(draws.message.find("auto chose importance because rejection accepts only"), std::string::npos)
      << draws.message;
  EXPECT_LE(number(draws, "evaluations"), 1.1 * 12500000);
  EXPECT_EQ(static_cast<double>(*counted.rows), number(draws, "evaluations"));
  // The pilot's bound and search are the only evaluations that are not candidates.
  EXPECT_EQ(number(draws, "evaluations") - number(draws, "prior_draws"), 30000);
}

TEST_F(Automatic, TakesSliceWhereBothWouldBeLong) {
  const Counted counted(narrow(3, 1e-3));
  const PosteriorDraws draws = sample(counted.posterior, {}, run_);
  EXPECT_EQ(draws.method, "slice");
  EXPECT_NE(draws.message.find("auto chose slice because rejection accepts only"), std::string::npos);
  EXPECT_NEAR(static_cast<double>(*counted.rows), number(draws, "evaluations"), 10000);  // + their log ratios
  SamplingOptions options;
  options.max_evaluations = 700000;  // 200,000 are left for slice
  const PosteriorDraws partial = sample(narrow(3, 1e-3), options, run_);
  EXPECT_EQ(partial.status, SamplingStatus::budget_spent);
  EXPECT_LT(number(partial, "evaluations"), 800000);
}

TEST_F(Automatic, TakesNutsWhereThereIsAGradientAndSliceWhereItDiverges) {
  const Posterior smooth = testing::gaussian_ratio(testing::uniform_prior(0, 1, 8), 0.3, 1e-3, 0.5);
  const PosteriorDraws draws = sample(smooth, {}, run_);
  ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
  EXPECT_EQ(draws.method, "nuts");
  EXPECT_NE(draws.message.find("auto chose nuts because rejection accepts only"), std::string::npos);
  EXPECT_GT(number(draws, "evaluations"), 500000);  // the pilot is counted
  for (const MarginalSummary& row : summarise(draws)) EXPECT_NEAR(row.mean, 0.3, 4 * row.mcse_mean);
  EXPECT_EQ(sample(testing::gaussian_ratio(testing::uniform_prior(0, 1, 5), 0.3, 1e-4), {}, run_).method,
            "slice");
  // Half of the space has no density: trajectories end at its edge.
  const Posterior edge =
      testing::exact(testing::uniform_prior(0, 1, 8),
                     [](MatrixView<const double> theta, std::span<double> r, MatrixView<double> d) {
                       for (std::size_t i = 0; i < theta.rows; ++i) {
                         r[i] = theta(i, 0) < 0.3 ? -std::numeric_limits<double>::infinity() : 0.0;
                         for (std::size_t j = 0; j < 8; ++j) {
                           r[i] -= 0.5 * std::pow((theta(i, j) - 0.3) / 1e-3, 2);
                           d(i, j) = -(theta(i, j) - 0.3) / 1e-6;
                         }
                       }
                     });
  SamplingOptions few;
  few.num_samples = 1000;
  const PosteriorDraws sliced = sample(edge, few, run_);
  ASSERT_EQ(sliced.status, SamplingStatus::complete) << sliced.message;
  EXPECT_EQ(sliced.method, "slice");
  EXPECT_NE(sliced.message.find("nuts had divergences"), std::string::npos) << sliced.message;
  const MarginalSummary row = summarise(sliced)[0];  // half normal
  EXPECT_NEAR(row.mean, 0.3 + 1e-3 * std::sqrt(2 / M_PI), 4 * row.mcse_mean);
}

}  // namespace
}  // namespace nrec
