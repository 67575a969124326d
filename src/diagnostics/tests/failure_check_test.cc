// What quick_check says of estimators that were trained on simulations of which some failed.
#include <gtest/gtest.h>

#include <cmath>

#include "nrec/core/error.h"
#include "nrec/diagnostics/quick_check.h"
#include "nrec/training/train.h"
#include "training/tests/failing_problem.h"

namespace nrec {
namespace {

using testing::cube_prior;

/// theta ~ U(0, 1), x = theta + N(0, 1), P(ok | theta) = 0.02 + 0.98 exp(-((theta - 0.5)/0.15)^2 / 2): weak data, so that
/// the chance of success shapes every posterior; nowhere so small that no success shows the ratio there.
class FailureCheck : public ::testing::Test {
 protected:
  static SimulationSet rows(std::size_t count, std::uint64_t seed, FailureRule rule) {
    const FunctionSimulator simulator(
        "bump", 1, 1, [](std::span<const double> theta, RandomStream& random, std::span<double> x) {
          const double z = (theta[0] - 0.5) / 0.15;
          x[0] = random.uniform() < 0.02 + 0.98 * std::exp(-0.5 * z * z) ? theta[0] + random.normal() : std::nan("");
        });
    return without_failures(simulate_from_prior(cube_prior(1), simulator, count, seed, *pool_), rule);
  }
  static void SetUpTestSuite() {
    pool_ = new ThreadPool(2);
    TrainingOptions options;
    options.num_classes = 9;
    options.training_batch_size = 256;
    options.learning_rate = 2e-3;
    options.learning_rate_schedule = "cosine";
    options.max_num_epochs = 20;
    options.stop_after_epochs = 0;
    const NetworkOptions network{.hidden_features = 16, .num_blocks = 1, .norm = "layer"};
    const auto trained = [&](FailureRule rule) {
      return new RatioEstimator(
          *train(cube_prior(1), rows(10000, 1, rule), network, options, RunContext{.pool = *pool_})
               .estimator);
    };
    modelled_ = trained(FailureRule::model);
    dropped_ = trained(FailureRule::drop);
    held_out_ = new SimulationSet(rows(600, 99, FailureRule::drop));
  }
  static void TearDownTestSuite() {
    delete modelled_;
    delete dropped_;
    delete held_out_;
    delete pool_;
  }
  static CheckReport check(const RatioEstimator& estimator, double log_ratio = 0.0) {
    PosteriorDraws draws;
    draws.theta = Matrix<double>(10, 1, std::vector<double>(10, 0.3));
    draws.log_ratio.assign(10, log_ratio);
    draws.message = "10 of 10 draws";
    const std::vector<double> x_o = {0.4};
    return quick_check(estimator, x_o, draws, held_out_->theta, held_out_->x, RunContext{.pool = *pool_});
  }
  static const CheckItem& item(const CheckReport& report, const std::string& name) {
    for (const CheckItem& candidate : report.items) {
      if (candidate.name == name) return candidate;
    }
    throw InternalError("no item " + name);
  }

  static inline ThreadPool* pool_ = nullptr;
  static inline SimulationSet* held_out_ = nullptr;
  static inline RatioEstimator* modelled_ = nullptr;
  static inline RatioEstimator* dropped_ = nullptr;
};

TEST_F(FailureCheck, TrustsALearntChanceOfSuccess) {
  const CheckReport report = check(*modelled_);
  EXPECT_EQ(report.verdict, Verdict::trusted) << report.sentence;
  const std::string& sentence = item(report, "failures").sentence;
  EXPECT_NE(sentence.find("P(ok | theta) is learnt: on "), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("mean over the draws 0."), std::string::npos) << sentence;
  EXPECT_NEAR(std::get<double>(*report.record.find("failures.mean_success_of_draws")), 0.423, 0.06);
  EXPECT_NEAR(std::get<double>(*report.record.find("normalisation.mean_ratio")), 1.0, 0.15);
}

TEST_F(FailureCheck, IsNeverTrustedWhenRowsWereDropped) {
  const CheckReport report = check(*dropped_);
  EXPECT_NE(report.verdict, Verdict::trusted);
  const CheckItem& failures = item(report, "failures");
  EXPECT_EQ(failures.verdict, Verdict::cannot_tell);
  EXPECT_NE(failures.sentence.find(
                "failed simulations were dropped, so the posterior is off by the factor 1 / P(ok | "
                "theta): parameters that often fail look more probable than they are"),
            std::string::npos)
      << failures.sentence;
  // The held-out successes show it here: the same ratio without the chance of success has the wrong coverage.
  EXPECT_EQ(item(report, "coverage").verdict, Verdict::not_trusted) << item(report, "coverage").sentence;
  EXPECT_NE(item(report, "coverage").sentence.find("the failed simulations that were dropped bias it"),
            std::string::npos)
      << item(report, "coverage").sentence;
}

TEST_F(FailureCheck, SaysNothingOfFailuresWhereNoneWere) {
  RatioEstimator estimator = *modelled_;
  estimator.success.reset();
  for (const CheckItem& candidate : check(estimator).items) EXPECT_NE(candidate.name, "failures");
}

TEST_F(FailureCheck, BoundsWhatTooFewFailuresCanDo) {
  RatioEstimator estimator = *modelled_;
  estimator.success = SuccessModel{.kind = SuccessKind::too_few, .num_ok = 9990, .num_failed = 10};
  // A posterior as wide as the prior: 10 of 10,000 at most. One of a thousandth of the prior: 10 of 20.
  EXPECT_EQ(item(check(estimator, 0.0), "failures").verdict, Verdict::trusted);
  const CheckReport narrow = check(estimator, std::log(1000.0));
  EXPECT_EQ(item(narrow, "failures").verdict, Verdict::cannot_tell);
  EXPECT_NE(item(narrow, "failures").sentence.find("they would be 50 % of the simulations there"),
            std::string::npos)
      << item(narrow, "failures").sentence;
  estimator.settings.set("loss", "nre-b");  // whose ratio has no scale
  EXPECT_EQ(item(check(estimator, 0.0), "failures").verdict, Verdict::cannot_tell);
}

TEST_F(FailureCheck, SeesAHeldOutRateThatIsNotThePredictedOne) {
  RatioEstimator estimator = *modelled_;
  estimator.success->calibration.mean_predicted += 0.1;
  const CheckItem failures = item(check(estimator), "failures");
  EXPECT_EQ(failures.verdict, Verdict::cannot_tell);
  EXPECT_NE(failures.sentence.find("standard errors apart: simulate more"), std::string::npos)
      << failures.sentence;
}

}  // namespace
}  // namespace nrec
