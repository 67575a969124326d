#include "nrec/diagnostics/quick_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nrec/core/error.h"
#include "nrec/simulation/simulator.h"
#include "nrec/training/train.h"

namespace nrec {
namespace {

/// theta ~ U(-2, 2), x = theta + 0.3 e, and a network that learnt it.
class QuickCheck : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    pool_ = new ThreadPool(2);
    prior_ = new Prior(Prior::from_terms({{{"t"}, "uniform", {{"low", {-2.0}}, {"high", {2.0}}}, "auto"}}));
    const FunctionSimulator simulator(
        "line", 1, 1, [](std::span<const double> theta, RandomStream& random, std::span<double> x) {
          x[0] = theta[0] + 0.3 * random.normal();
        });
    held_out_ = new SimulationSet(simulate_from_prior(*prior_, simulator, 200, 99, *pool_));
    TrainingOptions options;
    options.num_classes = 19;
    options.training_batch_size = 256;
    options.learning_rate = 5e-3;
    options.learning_rate_schedule = "cosine";
    options.max_num_epochs = 40;
    options.stop_after_epochs = 0;
    const NetworkOptions network{.hidden_features = 16, .num_blocks = 1, .norm = "layer"};
    const SimulationSet simulations = simulate_from_prior(*prior_, simulator, 8000, 1, *pool_);
    estimator_ = new RatioEstimator(
        *train(*prior_, simulations, network, options, RunContext{.pool = *pool_}).estimator);
  }
  static void TearDownTestSuite() {
    delete estimator_;
    delete held_out_;
    delete prior_;
    delete pool_;
  }

  CheckReport check(const RatioEstimator& estimator, double x_o = 0.5) const {
    PosteriorDraws draws;
    draws.theta = Matrix<double>(10, 1);
    draws.message = "10 of 10 draws";
    const std::vector<double> observation = {x_o};
    return quick_check(estimator, observation, draws, held_out_->theta, held_out_->x,
                       RunContext{.pool = *pool_});
  }
  static const CheckItem& item(const CheckReport& report, const std::string& name) {
    for (const CheckItem& candidate : report.items) {
      if (candidate.name == name) return candidate;
    }
    throw InternalError("no item " + name);
  }
  /// The log ratio multiplied by `factor`: a posterior that is too narrow (> 1) or too wide (< 1).
  static RatioEstimator scaled(float factor) {
    RatioEstimator copy = *estimator_;
    for (std::size_t i = copy.network.out_weight(); i <= copy.network.out_bias(); ++i)
      copy.network.weights()[i] *= factor;
    return copy;
  }

  static inline ThreadPool* pool_ = nullptr;
  static inline Prior* prior_ = nullptr;
  static inline SimulationSet* held_out_ = nullptr;
  static inline RatioEstimator* estimator_ = nullptr;
};

TEST_F(QuickCheck, TrustsAGoodEstimator) {
  const CheckReport report = check(*estimator_);
  EXPECT_EQ(report.verdict, Verdict::trusted) << report.sentence;
  EXPECT_EQ(report.sentence, "all quick checks passed");
  EXPECT_EQ(std::get<std::string>(*report.record.find("verdict")), "trusted");
}

TEST_F(QuickCheck, CatchesPosteriorsThatAreTooNarrow) {
  const CheckReport report = check(scaled(4.0f));
  EXPECT_EQ(report.verdict, Verdict::not_trusted);
  EXPECT_EQ(item(report, "coverage").verdict, Verdict::not_trusted);
  EXPECT_NE(item(report, "coverage").sentence.find("too narrow"), std::string::npos)
      << item(report, "coverage").sentence;
}

TEST_F(QuickCheck, CatchesPosteriorsThatAreTooWide) {
  const CheckReport report = check(scaled(0.25f));
  EXPECT_EQ(item(report, "coverage").verdict, Verdict::not_trusted);
  EXPECT_NE(item(report, "coverage").sentence.find("too wide"), std::string::npos)
      << item(report, "coverage").sentence;
}

TEST_F(QuickCheck, SeesAShiftOfTheRatioThatThePosteriorDoesNotShow) {
  RatioEstimator shifted = *estimator_;
  shifted.network.weights()[shifted.network.out_bias()] += static_cast<float>(std::log(9.0));
  const CheckReport report = check(shifted);
  EXPECT_EQ(item(report, "coverage").verdict, Verdict::trusted);
  EXPECT_EQ(item(report, "normalisation").verdict, Verdict::cannot_tell);
  shifted.settings.set("loss", "nre-b");
  EXPECT_EQ(item(check(shifted), "normalisation").verdict,
            Verdict::trusted);  // NRE-B promises no normalisation
}

TEST_F(QuickCheck, NamesColumnsOutsideTheSimulations) {
  const CheckReport report = check(*estimator_, 50.0);
  EXPECT_EQ(report.verdict, Verdict::not_trusted);
  EXPECT_NE(report.sentence.find("x_o[0] = 50 (simulated"), std::string::npos) << report.sentence;
}

TEST_F(QuickCheck, CannotTellWithoutHeldOutSimulations) {
  PosteriorDraws draws;
  draws.theta = Matrix<double>(10, 1);
  const std::vector<double> observation = {0.5};
  const CheckReport report = quick_check(*estimator_, observation, draws, {}, {}, RunContext{.pool = *pool_});
  EXPECT_EQ(report.verdict, Verdict::cannot_tell);
  draws.status = SamplingStatus::no_support;
  draws.theta = Matrix<double>(0, 1);
  EXPECT_EQ(quick_check(*estimator_, observation, draws, {}, {}, RunContext{.pool = *pool_}).verdict,
            Verdict::not_trusted);
}

TEST_F(QuickCheck, VouchesForFewIndependentRowsOnly) {
  PosteriorDraws draws;
  draws.theta = Matrix<double>(10, 1);
  const auto checked = [&](std::size_t rows) {
    Matrix<double> x_o(rows, 1);
    std::fill(x_o.values().begin(), x_o.values().end(), 0.5);
    return quick_check(*estimator_, {x_o, {&draws, 1}}, held_out_->theta, held_out_->x,
                       RunContext{.pool = *pool_});
  };
  EXPECT_EQ(most_iid_rows(200), 12u);
  EXPECT_EQ(most_iid_rows(0), 1u);
  EXPECT_EQ(item(checked(12), "independent rows").verdict, Verdict::trusted);
  const CheckReport report = checked(13);
  EXPECT_EQ(item(report, "independent rows").verdict, Verdict::cannot_tell);
  EXPECT_NE(
      item(report, "independent rows")
          .sentence.find("13 independent rows; the coverage of 200 held-out simulations can vouch for 12"),
      std::string::npos)
      << item(report, "independent rows").sentence;
  EXPECT_EQ(std::get<std::int64_t>(*report.record.find("iid.rows")), 13);
  for (const CheckItem& one : checked(1).items) EXPECT_NE(one.name, "independent rows");
}

TEST_F(QuickCheck, LooksAtEveryObservationOfABatch) {
  std::vector<PosteriorDraws> all(3);
  for (PosteriorDraws& draws : all) draws.theta = Matrix<double>(10, 1);
  Matrix<double> x_o(3, 1, {0.5, 0.25, -0.5});
  const auto checked = [&] {
    return quick_check(*estimator_, {x_o, all}, held_out_->theta, held_out_->x, RunContext{.pool = *pool_});
  };
  EXPECT_EQ(item(checked(), "draws").sentence, "3 of 3 observations have all their draws");
  EXPECT_EQ(item(checked(), "draws").verdict, Verdict::trusted);
  all[1].status = SamplingStatus::budget_spent;
  all[2].status = SamplingStatus::chains_disagree;
  all[2].message = "R-hat 1.3";
  x_o(1, 0) = 50.0;
  const CheckReport report = checked();
  EXPECT_EQ(item(report, "draws").verdict, Verdict::not_trusted);
  EXPECT_EQ(item(report, "draws").sentence,
            "1 of 3 observations have all their draws; the first of the worst is row 2: R-hat 1.3");
  EXPECT_NE(item(report, "observation range").sentence.find("1 of 3 rows of the observation"),
            std::string::npos);
  all.pop_back();
  try {
    checked();
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "check: there are 2 sets of draws and 3 rows of x_o; there must be one set for all rows, or "
                 "one for every row");
  }
}

TEST_F(QuickCheck, DoesNotTrustUnreliableWeights) {
  PosteriorDraws draws;
  draws.theta = Matrix<double>(10, 1);
  draws.status = SamplingStatus::weights_unreliable;
  draws.message = "10 of 10000 draws; the weights are unreliable";
  const std::vector<double> observation = {0.5};
  const CheckReport report = quick_check(*estimator_, observation, draws, {}, {}, RunContext{.pool = *pool_});
  EXPECT_EQ(report.verdict, Verdict::not_trusted);
  EXPECT_EQ(report.sentence, "draws: 10 of 10000 draws; the weights are unreliable");
}

TEST_F(QuickCheck, FalseAlarmsStayRare) {
  // The same good estimator on 40 fresh held-out sets: at level 0.001 none should be refused, few be borderline.
  const FunctionSimulator simulator(
      "line", 1, 1, [](std::span<const double> theta, RandomStream& random, std::span<double> x) {
        x[0] = theta[0] + 0.3 * random.normal();
      });
  int refused = 0, borderline = 0;
  for (std::uint64_t seed = 200; seed < 240; ++seed) {
    const SimulationSet fresh = simulate_from_prior(*prior_, simulator, 200, seed, *pool_);
    PosteriorDraws draws;
    draws.theta = Matrix<double>(10, 1);
    const std::vector<double> observation = {0.5};
    const CheckReport report =
        quick_check(*estimator_, observation, draws, fresh.theta, fresh.x, RunContext{.pool = *pool_});
    refused += item(report, "coverage").verdict == Verdict::not_trusted;
    borderline += item(report, "coverage").verdict == Verdict::cannot_tell;
  }
  EXPECT_EQ(refused, 0);
  EXPECT_LE(borderline, 4);
}

}  // namespace
}  // namespace nrec
