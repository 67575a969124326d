#include "nrec/training/success_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nrec/core/error.h"
#include "training/softplus.h"
#include "training/success_objective.h"
#include "training/tests/failing_problem.h"

namespace nrec {
namespace {

using testing::cube_prior;
using testing::failing_rows;
using testing::normal_cdf;
using testing::saturating_rows;
using testing::SuccessChance;

double logistic(double z) { return 1.0 / (1.0 + std::exp(-z)); }

template <class E, class F>
std::string text_of(F&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "no exception of the wanted type";
  return "";
}

class SuccessModelTest : public ::testing::Test {
 protected:
  /// log P(ok | theta) at prior draws that training has not seen.
  std::vector<double> log_p(const SuccessModel& model, const Matrix<double>& theta) const {
    std::vector<double> result(theta.rows());
    SuccessEvaluator(model, cube_prior(theta.cols()), run_)(theta, result);
    return result;
  }
  static Matrix<double> fresh_theta(std::size_t dim) {
    Matrix<double> theta(5000, dim);
    cube_prior(dim).sample(99, Stream::check, 0, theta);
    return theta;
  }
  /// Root mean square of P(ok | theta) - chance over the prior.
  double error_of(const SuccessModel& model, std::size_t dim, const SuccessChance& chance) const {
    const Matrix<double> theta = fresh_theta(dim);
    const std::vector<double> found = log_p(model, theta);
    double sum = 0.0;
    for (std::size_t i = 0; i < theta.rows(); ++i) {
      const double difference = std::exp(found[i]) - chance(theta.row(i));
      sum += difference * difference;
    }
    return std::sqrt(sum / static_cast<double>(theta.rows()));
  }
  SuccessModel learn(std::size_t dim, std::size_t rows, const SuccessChance& chance, std::uint64_t seed = 1) {
    return learn_success(cube_prior(dim), failing_rows(dim, rows, chance, pool_, seed), run_);
  }

  ThreadPool pool_{1};  // steps are short: waiting for threads costs more than they save
  RunContext run_{.pool = pool_};
};

TEST_F(SuccessModelTest, FindsASmoothChanceInOneDimension) {
  const SuccessChance chance = [](auto theta) { return normal_cdf((0.8 - theta[0]) / 0.1); };
  const SuccessModel model = learn(1, 10000, chance);
  ASSERT_EQ(model.kind, SuccessKind::network);
  EXPECT_LT(error_of(model, 1, chance), 0.035);
  // Control: a constant rate is ten times as far off.
  SuccessModel constant = model;
  constant.network.reset();
  EXPECT_GT(error_of(constant, 1, chance), 0.3);
  // Held-out rows say the same, and the mean over the prior is the rate.
  EXPECT_LT(std::fabs(model.calibration.z_score()), 3.0);
  EXPECT_LT(model.calibration.brier_score, 0.5 * model.calibration.constant_brier_score);
  EXPECT_NEAR(model.calibration.gain, 0.33, 0.06);
  double mean = 0.0;
  for (const double value : log_p(model, fresh_theta(1))) mean += std::exp(value) / 5000.0;
  EXPECT_NEAR(mean, model.rate(), 0.02);
}

TEST_F(SuccessModelTest, FindsAnInteractionInThreeDimensions) {
  const SuccessChance chance = [](auto theta) {
    return logistic(2 - 6 * theta[0] + 5 * theta[0] * theta[1]);
  };
  const SuccessModel model = learn(3, 10000, chance);
  ASSERT_EQ(model.kind, SuccessKind::network);
  EXPECT_LT(error_of(model, 3, chance), 0.06);
  SuccessModel constant = model;
  constant.network.reset();
  EXPECT_GT(error_of(constant, 3, chance), 0.24);
}

TEST_F(SuccessModelTest, FindsWallsInOneAndInTwentyDimensions) {
  const SuccessChance wall = [](auto theta) { return theta[0] < 0.8 ? 1.0 : 0.0; };
  const SuccessModel sharp = learn(1, 10000, wall);
  ASSERT_EQ(sharp.kind, SuccessKind::network);
  const Matrix<double> theta(3, 1, {0.1, 0.78, 0.9});
  const std::vector<double> found = log_p(sharp, theta);
  EXPECT_GT(found[0], std::log(0.99));
  EXPECT_GT(found[1], std::log(0.9));
  EXPECT_LT(found[2], std::log(0.01));
  // 10,000 points in 20 dimensions leave the wall blurred: better than constant (0.40), far from sharp.
  const SuccessModel wide = learn(20, 10000, wall);
  ASSERT_EQ(wide.kind, SuccessKind::network);
  EXPECT_LT(error_of(wide, 20, wall), 0.2);
}

TEST_F(SuccessModelTest, FindsTheFewSuccessesOfASimulatorThatNearlyAlwaysFails) {
  const SuccessChance corner = [](auto theta) { return theta[0] > 0.9 && theta[1] > 0.9 ? 1.0 : 0.0; };
  const SuccessModel model = learn(2, 10000, corner);
  ASSERT_EQ(model.kind, SuccessKind::network);
  EXPECT_NEAR(model.rate(), 0.01, 0.003);
  const Matrix<double> theta(3, 2, {0.5, 0.5, 0.95, 0.5, 0.97, 0.97});
  const std::vector<double> found = log_p(model, theta);
  EXPECT_LT(found[0], std::log(0.002));
  EXPECT_LT(found[1], std::log(0.05));
  EXPECT_GT(found[2], std::log(0.5));
}

TEST_F(SuccessModelTest, FindsAWallBehindWhichAFewInAThousandLie) {
  const SuccessChance wall = [](auto theta) { return theta[0] < 0.995 ? 1.0 : 0.0; };
  const SuccessModel model = learn(1, 10000, wall);
  ASSERT_EQ(model.kind, SuccessKind::network);
  const Matrix<double> theta(2, 1, {0.9, 0.999});
  const std::vector<double> found = log_p(model, theta);
  EXPECT_GT(found[0], std::log(0.99));
  EXPECT_LT(found[1], std::log(0.5));
}

TEST_F(SuccessModelTest, StaysConstantWhereFailuresDoNotDependOnTheta) {
  // Chance alone lets the network win now and then; then it must be close to constant all the same.
  int constant = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const SuccessModel model = learn(
        3, 4000, [](auto) { return 0.8; }, seed);
    constant += model.kind == SuccessKind::no_better;
    EXPECT_LT(error_of(model, 3, [&](auto) { return model.rate(); }), 0.05) << seed;
  }
  EXPECT_GE(constant, 5);
}

TEST_F(SuccessModelTest, TakesAConstantRateWhereOneKindIsRare) {
  const auto first = [](std::size_t count, double value) {
    return [count, value](auto theta) {
      return (theta[0] < static_cast<double>(count) / 10000.0) == (value == 1.0) ? 1.0 : 0.0;
    };
  };
  for (const double value : {0.0, 1.0}) {  // some ten failures, some ten successes
    const SuccessModel model = learn(1, 10000, first(10, value));
    EXPECT_EQ(model.kind, SuccessKind::too_few);
    EXPECT_FALSE(model.network);
    EXPECT_NEAR(model.rate(), value == 0.0 ? 0.999 : 0.001, 0.001);
    for (const double found : log_p(model, fresh_theta(1))) EXPECT_EQ(found, std::log(model.rate()));
    EXPECT_NE(
        model.sentence().find(value == 0.0 ? "too few failures to learn" : "too few successes to learn"),
        std::string::npos)
        << model.sentence();
  }
}

TEST_F(SuccessModelTest, HoldsOutBothKinds) {
  for (const std::size_t failures : {std::size_t{20}, std::size_t{1980}}) {
    SimulationSet set;
    set.theta = Matrix<double>(2000 - failures, 1);
    set.x = Matrix<double>(2000 - failures, 1);
    set.failed_theta = Matrix<double>(failures, 1);
    cube_prior(1).sample(5, Stream::prior, 0, set.theta);
    cube_prior(1).sample(6, Stream::prior, 0, set.failed_theta);
    const SuccessData data = prepare_success_data(cube_prior(1), set, 3);
    std::size_t held_out_failures = 0;
    for (const std::uint32_t row : data.held_out) held_out_failures += !data.is_ok(row);
    EXPECT_EQ(data.held_out.size(), 400u);
    EXPECT_EQ(data.training.size(), 1600u);
    EXPECT_EQ(held_out_failures, failures / 5);
  }
}

TEST_F(SuccessModelTest, SameBitsForAnyNumberOfThreads) {
  const SimulationSet set = saturating_rows(2000, FailureRule::model, pool_);
  std::vector<float> first;
  for (const int threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    const SuccessModel model = learn_success(cube_prior(1), set, RunContext{.pool = pool});
    ASSERT_EQ(model.kind, SuccessKind::network);
    const std::vector<float> weights(model.network->weights().begin(), model.network->weights().end());
    if (first.empty()) first = weights;
    EXPECT_EQ(weights, first) << threads << " threads";
  }
  const SuccessModel other = learn_success(cube_prior(1), set, RunContext{.pool = pool_, .seed = 2});
  EXPECT_NE(std::vector<float>(other.network->weights().begin(), other.network->weights().end()), first);
}

TEST_F(SuccessModelTest, IsFiniteEverywhereInsideAndOnTheBounds) {
  const SuccessModel model = learn(1, 4000, [](auto theta) { return theta[0] < 0.8 ? 1.0 : 0.0; });
  const Matrix<double> theta(5, 1, {0.0, 1e-300, 0.5, 1.0 - 1e-16, 1.0});
  for (const double value : log_p(model, theta)) {
    EXPECT_TRUE(std::isfinite(value)) << value;
    EXPECT_LE(value, 0.0);
  }
}

TEST_F(SuccessModelTest, EndsAtAStopWithWhatThereIs) {
  StopRequest stop;
  stop.request(2);
  RunContext run = run_;
  run.stop = &stop;
  const SuccessModel model =
      learn_success(cube_prior(1), saturating_rows(2000, FailureRule::model, pool_), run);
  EXPECT_EQ(model.kind, SuccessKind::no_better);
  EXPECT_NE(model.sentence().find("had no epoch"), std::string::npos) << model.sentence();
}

TEST_F(SuccessModelTest, RefusesSetsItCannotLearnFrom) {
  const SimulationSet dropped = saturating_rows(500, FailureRule::drop, pool_);
  EXPECT_NE(text_of<DomainError>([&] { learn_success(cube_prior(1), dropped, run_); }).find("0 failures"),
            std::string::npos);
  SimulationSet set = saturating_rows(500, FailureRule::model, pool_);
  EXPECT_EQ(text_of<ShapeError>([&] { learn_success(cube_prior(2), set, run_); }),
            "failures: theta of the successful simulations has 1 columns but the prior has 2 parameters; "
            "list every "
            "column of theta under [parameters], in order");
  set.failed_theta(3, 0) = 1.5;
  EXPECT_EQ(text_of<DomainError>([&] { learn_success(cube_prior(1), set, run_); }),
            "failures: theta = (1.5) of a failed simulation is outside the support of the prior; the "
            "simulations must "
            "be drawn from the prior that the problem names");
  set.failed_theta(3, 0) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(learn_success(cube_prior(1), set, run_), DomainError);
}

TEST_F(SuccessModelTest, GradientMatchesDifferencesAndIsZeroAtAConstantRate) {
  const SuccessChance chance = [](auto theta) { return normal_cdf((0.8 - theta[0]) / 0.1); };
  SuccessModel model = learn(2, 4000, chance);
  ASSERT_EQ(model.kind, SuccessKind::network);
  const Prior prior = cube_prior(2);
  Matrix<double> theta = fresh_theta(2);
  theta.resize_rows(50);
  Matrix<double> u(50, 2), d_u(50, 2);
  prior.to_unbounded(theta, u);
  std::vector<double> value(50), above(50), below(50);
  SuccessEvaluator(model, prior, run_).with_gradient(theta, value, d_u);
  EXPECT_EQ(value, log_p(model, theta));
  constexpr double h = 1e-3;  // float32 logits: a smaller step drowns in their rounding
  double size = 0.0, difference = 0.0;
  for (std::size_t j = 0; j < 2; ++j) {
    for (const double step : {h, -h}) {
      Matrix<double> moved = u;
      for (std::size_t i = 0; i < 50; ++i) moved(i, j) += step;
      prior.to_constrained(moved, moved);
      (step > 0 ? above : below) = log_p(model, moved);
    }
    for (std::size_t i = 0; i < 50; ++i) {
      size = std::max(size, std::fabs(d_u(i, j)));
      difference = std::max(difference, std::fabs(d_u(i, j) - (above[i] - below[i]) / (2 * h)));
    }
  }
  EXPECT_LT(difference, 0.02 * size);
  EXPECT_GT(size, 1.0);
  model.network.reset();
  SuccessEvaluator(model, prior, run_).with_gradient(theta, value, d_u);
  EXPECT_EQ(value, std::vector<double>(50, std::log(model.rate())));
  EXPECT_EQ(d_u.values(), std::vector<double>(100, 0.0));
}

TEST_F(SuccessModelTest, EvaluatorRefusesWrongShapes) {
  const SuccessModel model =
      learn_success(cube_prior(1), saturating_rows(500, FailureRule::model, pool_), run_);
  const SuccessEvaluator evaluator(model, cube_prior(1), run_);
  std::vector<double> out(2);
  EXPECT_EQ(
      text_of<ShapeError>([&] { evaluator(Matrix<double>(3, 1).view(), out); }),
      "success model: theta is [3, 1] with room for 2 values; it must have 1 columns and one value a row");
  EXPECT_EQ(text_of<ShapeError>([&] {
              evaluator.with_gradient(Matrix<double>(2, 1).view(), out, Matrix<double>(2, 3).view());
            }),
            "success model: d_u is [2, 3]; it must have the shape of theta, [2, 1]");
  EXPECT_EQ(text_of<ConfigError>([] { success_kind("perhaps"); }),
            "success model: kind \"perhaps\" is unknown; it must be one of network | no better | too few");
}

TEST(SuccessObjective, LossAndGradientAreThoseOfBinaryCrossEntropy) {
  ThreadPool pool(1);
  const SimulationSet set = saturating_rows(500, FailureRule::model, pool);
  const SuccessData data = prepare_success_data(cube_prior(1), set, 1);
  SuccessObjective objective(data, 1);
  objective.load_batch(0);
  EpochOrder order(data.training, data.batch_size, 1);
  const auto rows = order.batch(0);
  const RowLoss loss = objective.row_loss();
  int kinds[2] = {0, 0};
  for (std::size_t row = 0; row < data.batch_size; ++row) {
    const bool ok = data.is_ok(rows[row]);
    ++kinds[ok];
    for (const float logit : {-40.0f, -1.5f, 0.0f, 2.0f, 40.0f}) {
      float d = 0.0f;
      const double value = loss.call(loss.context, row, {&logit, 1}, {&d, 1});
      const double p = logistic(logit);
      EXPECT_NEAR(value, ok ? softplus(-logit) : softplus(logit), 1e-12);
      EXPECT_NEAR(d, p - (ok ? 1.0 : 0.0), 1e-6);
    }
  }
  EXPECT_GT(kinds[0], 0);
  EXPECT_GT(kinds[1], 0);
  EXPECT_EQ(softplus(1000.0), 1000.0);
  EXPECT_EQ(softplus(-1000.0), 0.0);
}

}  // namespace
}  // namespace nrec
