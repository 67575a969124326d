// standardise_from = "first_batch": the statistics that the published experiments took.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "training/contrastive_objective.h"
#include "training/joint_objective.h"
#include "training/tests/train_fixture.h"

namespace nrec {
namespace {

using testing::error_of;
using testing::short_training;
using testing::small_network;
using testing::toy_prior;
using testing::toy_simulations;
using testing::toy_simulator;

class FirstBatch : public testing::TrainTest {
 protected:
  TrainingData data(const TrainingOptions& options) {
    return prepare_training_data(toy_prior(), toy_simulations(600, pool_), options, run_);
  }
};

/// Mean and unbiased sd, two passes, as numpy.mean and numpy.std(ddof=1) say it.
std::pair<double, double> mean_and_sd(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0.0, square = 0.0;
  for (const double value : values) mean += value / n;
  for (const double value : values) square += (value - mean) * (value - mean);
  return {mean, std::sqrt(square / (n - 1))};
}

/// The toy's theta in unbounded space.
double unbounded(double theta) {
  const double share = (theta + std::sqrt(3.0)) / (2.0 * std::sqrt(3.0));
  return std::log(share / (1.0 - share));
}

TEST_F(FirstBatch, HasMeanZeroAndUnitSd) {
  TrainingOptions options = short_training();
  options.standardise_from = "first_batch";
  const TrainingData training = data(options);
  const SimulationSet simulations = toy_simulations(600, pool_);
  EpochOrder order(training.training, 128, run_.seed);
  std::vector<double> theta, x;
  for (const std::uint32_t row : order.batch(0)) {
    theta.push_back(unbounded(simulations.theta(row, 0)));
    x.push_back(simulations.x(row, 0));
  }
  ASSERT_EQ(x.size(), 128u);
  EXPECT_NEAR(training.theta_standardiser.shift[0], mean_and_sd(theta).first, 1e-12);
  EXPECT_NEAR(training.theta_standardiser.scale[0], mean_and_sd(theta).second, 1e-12);
  EXPECT_NEAR(training.x_standardiser.shift[0], mean_and_sd(x).first, 1e-12);
  EXPECT_NEAR(training.x_standardiser.scale[0], mean_and_sd(x).second, 1e-12);
  // The batch that training takes first is this one.
  ContrastiveObjective objective(training, run_.seed);
  const PairBatch batch = objective.load_batch(0);
  std::vector<double> taken;
  for (std::size_t i = 0; i < 128; ++i) taken.push_back(batch.x(i, 0));
  EXPECT_NEAR(mean_and_sd(taken).first, 0.0, 1e-6);
  EXPECT_NEAR(mean_and_sd(taken).second, 1.0, 1e-6);
  // Statistics of all simulations are others.
  options.standardise_from = "training";
  EXPECT_GT(std::fabs(data(options).x_standardiser.shift[0] - mean_and_sd(x).first), 1e-3);
}

TEST_F(FirstBatch, OfTheJointRegimeIsMadeForIt) {
  TrainingOptions options = short_training();
  options.regime = "joint";
  options.standardise_from = "first_batch";
  const FunctionSimulator simulator = toy_simulator();
  const SimulationSet longer = toy_simulations(600 + 128, pool_);
  const TrainingData training =
      prepare_training_data(toy_prior(), toy_simulations(600, pool_), options, run_, &simulator);
  std::vector<double> theta, x;
  for (std::size_t row = 600; row < 728; ++row) {
    theta.push_back(unbounded(longer.theta(row, 0)));
    x.push_back(longer.x(row, 0));
  }
  EXPECT_NEAR(training.theta_standardiser.shift[0], mean_and_sd(theta).first, 1e-12);
  EXPECT_NEAR(training.theta_standardiser.scale[0], mean_and_sd(theta).second, 1e-12);
  EXPECT_NEAR(training.x_standardiser.shift[0], mean_and_sd(x).first, 1e-12);
  EXPECT_NEAR(training.x_standardiser.scale[0], mean_and_sd(x).second, 1e-12);
  EXPECT_NE(error_of([&] {
              train(toy_prior(), toy_simulations(600, pool_), small_network(), options, run_);
            }).find("regime = \"joint\" makes new simulations for every mini-batch and needs a simulator"),
            std::string::npos);
}

TEST_F(FirstBatch, FloorsTheSdOfARareCount) {
  // One count among 600 zeros, outside the first mini-batch: the first feature of SIR.
  TrainingOptions options = short_training();
  options.max_num_epochs = 1;
  SimulationSet simulations = toy_simulations(600, pool_);
  const TrainingData split = data(options);
  EpochOrder order(split.training, 128, run_.seed);
  const std::span<const std::uint32_t> batch = order.batch(0);
  std::uint32_t rare = 0;
  while (std::ranges::find(batch, rare) != batch.end()) ++rare;
  for (std::size_t i = 0; i < 600; ++i) simulations.x(i, 0) = i == rare ? 1.0 : 0.0;
  const auto prepared = [&] { return prepare_training_data(toy_prior(), simulations, options, run_); };
  const TrainingData right = prepared();
  EXPECT_NEAR(right.x_standardiser.scale[0], std::sqrt((1.0 - 1.0 / 600) / 599), 1e-12);
  EXPECT_LT(right.x(rare, 0), 25.0f);
  EXPECT_TRUE(right.warnings.empty());
  options.standardise_from = "first_batch";
  const TrainingData published = prepared();
  EXPECT_EQ(published.x_standardiser.shift[0], 0.0);
  EXPECT_EQ(published.x_standardiser.scale[0], 1e-7);
  EXPECT_FLOAT_EQ(published.x(rare, 0), 1e7f);
  ASSERT_EQ(published.warnings.size(), 1u);
  EXPECT_EQ(
      published.warnings[0],
      "constant in the first mini-batch but not in all simulations: x[0] is divided by 1e-7 and becomes huge "
      "elsewhere, as in the published experiments; standardise_from = \"training\" takes the statistics of "
      "all simulations");
  // A column that never varies is centred, and finite.
  for (std::size_t i = 0; i < 600; ++i) simulations.x(i, 0) = 0.3;
  EXPECT_EQ(prepared().x_standardiser.scale[0], 1e-7);
  EXPECT_NEAR(prepared().x(rare, 0), 0.0f, 1e-6f);
  for (std::size_t i = 0; i < 600; ++i) simulations.theta(i, 0) = 0.5;
  EXPECT_NE(error_of([&] { prepared(); }).find("theta column 0 (theta) is constant"), std::string::npos);
}

TEST_F(FirstBatch, IsPartOfTheEstimator) {
  TrainingOptions options = short_training();
  const SimulationSet simulations = toy_simulations(600, pool_);
  const TrainingResult all = train(toy_prior(), simulations, small_network(), options, run_);
  options.standardise_from = "first_batch";
  const TrainingData training = data(options);
  const TrainingResult first = train(toy_prior(), simulations, small_network(), options, run_);
  EXPECT_EQ(first.estimator->x_standardiser, training.x_standardiser);
  EXPECT_EQ(first.estimator->theta_standardiser, training.theta_standardiser);
  EXPECT_NE(first.estimator->x_standardiser, all.estimator->x_standardiser);
  EXPECT_EQ(std::get<std::string>(*first.estimator->settings.find("standardise_from")), "first_batch");
  EXPECT_EQ(std::get<std::string>(*all.estimator->settings.find("standardise_from")), "training");
}

}  // namespace
}  // namespace nrec
