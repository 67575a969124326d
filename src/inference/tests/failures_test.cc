// The posterior of simulations of which some failed, against quadrature: docs/methods/failures.md.
#include <gtest/gtest.h>

#include <cmath>

#include "nrec/inference/sample.h"
#include "nrec/inference/summarise.h"
#include "nrec/training/train.h"
#include "training/tests/failing_problem.h"

namespace nrec {
namespace {

using testing::cube_prior;
using testing::normal_cdf;
using testing::saturating_rows;

constexpr double kObservation = 0.75;
constexpr double kRightMean = 0.748236;    // of p(theta | x_o, ok)
constexpr double kDroppedMean = 0.832176;  // of p(theta) r with a ratio of successes

/// Mean of theta ~ U(0, 1) weighted with exp(log_weight), midpoint rule.
template <class F>
double weighted_mean(const F& log_weights) {
  constexpr std::size_t kPoints = 4000;
  Matrix<double> theta(kPoints, 1);
  for (std::size_t i = 0; i < kPoints; ++i) theta(i, 0) = (static_cast<double>(i) + 0.5) / kPoints;
  std::vector<double> log_weight(kPoints);
  log_weights(theta, log_weight);
  double sum = 0.0, first = 0.0;
  for (std::size_t i = 0; i < kPoints; ++i) {
    sum += std::exp(log_weight[i]);
    first += std::exp(log_weight[i]) * theta(i, 0);
  }
  return first / sum;
}

TEST(FailuresByQuadrature, TheNumbersOfTheDocumentAreRight) {
  const auto mean = [](bool dropped) {
    return weighted_mean([&](const Matrix<double>& theta, std::vector<double>& log_weight) {
      for (std::size_t i = 0; i < log_weight.size(); ++i) {
        const double z = (kObservation - theta(i, 0)) / 0.1;
        log_weight[i] = -0.5 * z * z - (dropped ? std::log(normal_cdf((0.8 - theta(i, 0)) / 0.1)) : 0.0);
      }
    });
  };
  EXPECT_NEAR(mean(false), kRightMean, 2e-6);
  EXPECT_NEAR(mean(true), kDroppedMean, 2e-6);
}

/// Trained once for all tests, on 10,000 simulations of which a fifth failed.
class Failures : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    pool_ = new ThreadPool(2);
    for (const std::uint64_t seed : {1, 2}) {
      TrainingOptions options;
      options.num_classes = 9;
      options.training_batch_size = 128;
      options.learning_rate = 1e-3;
      options.learning_rate_schedule = "cosine";
      options.max_num_epochs = 20;
      options.stop_after_epochs = 0;
      const NetworkOptions network{.hidden_features = 24, .num_blocks = 1, .norm = "layer"};
      const SimulationSet set = saturating_rows(10000, FailureRule::model, *pool_, seed);
      const RunContext run{.pool = *pool_, .seed = seed};
      estimators_.push_back(*train(cube_prior(1), set, network, options, run).estimator);
    }
  }
  static void TearDownTestSuite() {
    estimators_.clear();
    delete pool_;
  }
  static Posterior posterior_of(const RatioEstimator& estimator) {
    const std::vector<double> x_o = {kObservation};
    return Posterior::from_estimator(estimator, x_o, RunContext{.pool = *pool_});
  }
  static double mean_of(const RatioEstimator& estimator) {
    return weighted_mean([&](const Matrix<double>& theta, std::vector<double>& log_weight) {
      posterior_of(estimator).log_density(theta, log_weight);
    });
  }

  static inline ThreadPool* pool_ = nullptr;
  static inline std::vector<RatioEstimator> estimators_;
};

TEST_F(Failures, ThePosteriorMeanIsTheRightOneAndWithoutTheModelItIsNot) {
  for (const RatioEstimator& estimator : estimators_) {
    ASSERT_EQ(estimator.success->kind, SuccessKind::network);
    EXPECT_NEAR(mean_of(estimator), kRightMean, 0.01);
    RatioEstimator dropped = estimator;  // what failures = "drop" trains: a test of training shows it
    dropped.success.reset();
    EXPECT_NEAR(mean_of(dropped), kDroppedMean, 0.025);
    EXPECT_GT(mean_of(dropped) - kRightMean, 0.05);
  }
}

TEST_F(Failures, EverySamplerDrawsFromIt) {
  const Posterior posterior = posterior_of(estimators_[0]);
  const double mean = mean_of(estimators_[0]);
  SamplingOptions options;
  options.num_samples = 5000;
  for (const char* method : {"rejection", "slice", "nuts", "auto"}) {
    options.method = method;
    const PosteriorDraws draws = sample(posterior, options, RunContext{.pool = *pool_});
    ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
    const MarginalSummary row = summarise(draws)[0];
    EXPECT_NEAR(row.mean, mean, 4 * row.sd / std::sqrt(row.ess)) << method;
    std::vector<double> log_ratio(draws.size());
    posterior.log_ratio(draws.theta, log_ratio);
    EXPECT_EQ(draws.log_ratio, log_ratio) << method;
  }
}

TEST_F(Failures, TheLogRatioIsThatOfTheModelsPartsAndHasMeanOneUnderThePrior) {
  const RatioEstimator& estimator = estimators_[0];
  RatioEstimator alone = estimator;
  alone.success.reset();
  constexpr std::size_t kDraws = 20000;
  Matrix<double> theta(kDraws, 1);
  cube_prior(1).sample(7, Stream::check, 0, theta);
  std::vector<double> both(kDraws), ratio(kDraws), log_p(kDraws);
  posterior_of(estimator).log_ratio(theta, both);
  posterior_of(alone).log_ratio(theta, ratio);
  SuccessEvaluator(*estimator.success, estimator.prior, RunContext{.pool = *pool_})(theta, log_p);
  double mean = 0.0, mean_alone = 0.0;
  for (std::size_t i = 0; i < kDraws; ++i) {
    EXPECT_DOUBLE_EQ(both[i], ratio[i] + (log_p[i] - std::log(estimator.success->rate())));
    mean += std::exp(both[i]) / kDraws;
    mean_alone += std::exp(ratio[i]) / kDraws;
  }
  EXPECT_NEAR(mean, 1.0, 0.1);
  EXPECT_GT(mean_alone, 1.4);  // 2.00 by quadrature: r alone is normalised under p(theta | ok)
}

TEST_F(Failures, EveryIndependentRowWasASuccess) {
  const RatioEstimator& estimator = estimators_[0];
  const RunContext run{.pool = *pool_};
  const Matrix<double> x_o(3, 1, {kObservation, 0.3, 0.5});
  Matrix<double> theta(50, 1);
  cube_prior(1).sample(7, Stream::check, 0, theta);
  std::vector<double> all(50), one(50), sum(50, 0.0);
  Posterior::from_iid_rows(estimator, x_o, run).log_ratio(theta, all);
  for (std::size_t r = 0; r < 3; ++r) {
    Posterior::from_estimator(estimator, x_o.row(r), run).log_ratio(theta, one);
    for (std::size_t i = 0; i < 50; ++i) sum[i] += one[i];
  }
  for (std::size_t i = 0; i < 50; ++i) EXPECT_NEAR(all[i], sum[i], 1e-12 * (1.0 + std::fabs(sum[i])));
}

TEST_F(Failures, AConstantRateDropsOut) {
  RatioEstimator constant = estimators_[0];
  RatioEstimator alone = estimators_[0];
  constant.success = SuccessModel{.kind = SuccessKind::too_few, .num_ok = 9, .num_failed = 3};
  alone.success.reset();
  const Matrix<double> theta(3, 1, {0.2, 0.7, 0.9});
  std::vector<double> one(3), other(3);
  posterior_of(constant).log_density(theta, one);
  posterior_of(alone).log_density(theta, other);
  EXPECT_EQ(one, other);
}

}  // namespace
}  // namespace nrec
