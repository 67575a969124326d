// Mini-batches with contrastive thetas from the prior, and of new simulations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "nrec/core/error.h"
#include "training/joint_objective.h"
#include "training/prior_objective.h"
#include "training/tests/train_fixture.h"

namespace nrec {
namespace {

using testing::bytes_of;
using testing::error_of;
using testing::short_training;
using testing::small_network;
using testing::toy_prior;
using testing::toy_simulations;
using testing::toy_simulator;

class Regimes : public testing::TrainTest {
 protected:
  TrainingOptions options(const std::string& regime) const {
    TrainingOptions options = short_training();
    options.regime = regime;
    options.steps_per_epoch = 4;
    return options;
  }
  TrainingData data(const TrainingOptions& options, std::size_t rows = 600) {
    return prepare_training_data(toy_prior(), toy_simulations(rows, pool_), options, run_);
  }
  const Prior prior_ = toy_prior();
  const FunctionSimulator simulator_ = toy_simulator();
};

/// How often each listed theta stands in columns first .. last - 1 of the candidates.
std::vector<int> uses(MatrixView<const std::uint32_t> candidates, std::size_t first, std::size_t last,
                      std::size_t behind, std::size_t count) {
  std::vector<int> counts(count);
  for (std::size_t b = 0; b < candidates.rows; ++b) {
    for (std::size_t j = first; j < last; ++j) ++counts.at(candidates(b, j) - behind);
  }
  return counts;
}

TEST_F(Regimes, EveryFreshThetaServesOneRowOfEachTerm) {
  struct Case {
    const char *loss, *contrast;
    int num_classes;
    std::size_t fresh, joint_first, joint_last, marginal_first, marginal_last;
  };
  const Case cases[] = {{"nre-c", "shared", 9, 9, 1, 10, 1, 10},
                        {"nre-c", "independent", 9, 9, 1, 9, 9, 18},
                        {"nre-b", "shared", 10, 9, 1, 10, 1, 10},
                        {"nre-a", "shared", 1, 1, 1, 2, 1, 2},
                        {"nre-a", "independent", 1, 1, 1, 1, 1, 2}};
  for (const Case& c : cases) {
    TrainingOptions chosen = options("prior");
    chosen.loss = c.loss;
    chosen.contrast = c.contrast;
    chosen.num_classes = c.num_classes;
    const TrainingData training = data(chosen);
    PriorObjective objective(prior_, training, run_);
    const PairBatch batch = objective.load_batch(3);
    ASSERT_EQ(batch.theta.rows, 128 * (1 + c.fresh)) << c.loss << " " << c.contrast;
    ASSERT_EQ(batch.candidates.cols, training.loss.num_columns());
    for (std::size_t b = 0; b < 128; ++b) EXPECT_EQ(batch.candidates(b, 0), b);
    const std::vector<int> marginal =
        uses(batch.candidates, c.marginal_first, c.marginal_last, 128, 128 * c.fresh);
    EXPECT_EQ(marginal, std::vector<int>(128 * c.fresh, 1)) << c.loss << " " << c.contrast;
    const std::vector<int> joint = uses(batch.candidates, c.joint_first, c.joint_last, 128, 128 * c.fresh);
    EXPECT_LE(*std::ranges::max_element(joint), 1);
  }
}

TEST_F(Regimes, FreshThetasAreDrawsOfThePriorAndNewInEveryStep) {
  const TrainingData training = data(options("prior"));
  PriorObjective objective(prior_, training, run_);
  std::set<float> seen;
  double sum = 0.0, square = 0.0, n = 0.0;
  for (std::int64_t step = 0; step < 5; ++step) {
    const PairBatch batch = objective.load_batch(step);
    for (std::size_t i = 128; i < batch.theta.rows; ++i) {
      const double u = static_cast<double>(batch.theta(i, 0)) * training.theta_standardiser.scale[0] +
                       training.theta_standardiser.shift[0];
      const double theta = std::sqrt(3.0) * (2.0 / (1.0 + std::exp(-u)) - 1.0);  // unit variance, mean 0
      seen.insert(batch.theta(i, 0));
      sum += theta;
      square += theta * theta;
      n += 1.0;
    }
  }
  EXPECT_GT(static_cast<double>(seen.size()), 0.99 * n);
  EXPECT_NEAR(sum / n, 0.0, 4.0 / std::sqrt(n));
  EXPECT_NEAR(square / n, 1.0, 4.0 * std::sqrt(0.8 / n));  // kurtosis 1.8
}

TEST_F(Regimes, RowsOfJointAreThoseOfALongerCampaign) {
  const TrainingOptions chosen = options("joint");
  const TrainingData training = data(chosen);
  JointObjective objective(prior_, simulator_, training, 4, run_);
  const SimulationSet longer = toy_simulations(600 + 3 * 128, pool_);
  const PairBatch batch = objective.load_batch(2);
  ASSERT_EQ(batch.x.rows, 128u);
  for (std::size_t i = 0; i < 128; ++i) {
    const double x = static_cast<double>(batch.x(i, 0)) * training.x_standardiser.scale[0] +
                     training.x_standardiser.shift[0];
    EXPECT_NEAR(x, longer.x(600 + 2 * 128 + i, 0), 1e-6);
  }
}

TEST_F(Regimes, EachLearnsTheToy) {
  for (const char* regime : {"fixed", "prior", "joint"}) {
    TrainingOptions chosen = options(regime);
    chosen.max_num_epochs = 40;
    chosen.steps_per_epoch = 28;
    chosen.learning_rate_schedule = "cosine";
    const TrainingResult result =
        train(toy_prior(), toy_simulations(4000, pool_), small_network(), chosen, run_, {}, &simulator_);
    ASSERT_TRUE(result.summary.usable) << regime;
    const EpochRecord& best =
        result.estimator->history[static_cast<std::size_t>(result.summary.best_epoch) - 1];
    EXPECT_NEAR(best.mean_ratio, 1.0, 0.25) << regime;
    EXPECT_GT(best.i1, 1.4) << regime;
    EXPECT_LT(best.i1, 2.178 + 0.15) << regime;  // never above the true mutual information beyond its error
    EXPECT_EQ(std::get<std::string>(*result.estimator->settings.find("regime")), regime);
  }
}

TEST_F(Regimes, SameBitsForAnyNumberOfThreadsAndAfterAStop) {
  const SimulationSet simulations = toy_simulations(600, pool_);
  for (const char* regime : {"prior", "joint"}) {
    const TrainingOptions chosen = options(regime);
    std::string first;
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      const TrainingResult result =
          train(toy_prior(), simulations, small_network(), chosen, {.pool = pool}, {}, &simulator_);
      save_estimator(*result.estimator, folder_ / "e.safetensors");
      const std::string bytes = bytes_of(folder_ / "e.safetensors");
      if (first.empty()) first = bytes;
      EXPECT_TRUE(first == bytes) << regime << " with " << threads << " threads";
    }
    const CheckpointOptions checkpoint = {.path = folder_ / (std::string(regime) + ".checkpoint"),
                                          .resume = true};
    TrainingOptions part = chosen;
    part.max_num_epochs = 2;
    train(toy_prior(), simulations, small_network(), part, run_, checkpoint, &simulator_);
    const TrainingResult resumed =
        train(toy_prior(), simulations, small_network(), chosen, run_, checkpoint, &simulator_);
    save_estimator(*resumed.estimator, folder_ / "r.safetensors");
    EXPECT_TRUE(first == bytes_of(folder_ / "r.safetensors")) << regime;
  }
}

TEST_F(Regimes, ThePriorHasNoBoundOnNumClasses) {
  TrainingOptions chosen = options("prior");
  chosen.training_batch_size = 16;
  chosen.num_classes = 40;
  chosen.max_num_epochs = 1;
  EXPECT_TRUE(train(toy_prior(), toy_simulations(60, pool_), small_network(), chosen, run_).summary.usable);
  chosen.regime = "fixed";
  EXPECT_NE(error_of([&] {
              train(toy_prior(), toy_simulations(60, pool_), small_network(), chosen, run_);
            }).find("num_classes = 40 needs a batch of at least 41 rows"),
            std::string::npos);
}

TEST_F(Regimes, RefuseWhatTheyCannotDo) {
  const SimulationSet simulations = toy_simulations(600, pool_);
  const auto refusal = [&](const std::string& regime, const SimulationSet& set, const Simulator* simulator) {
    return error_of([&] { train(toy_prior(), set, small_network(), options(regime), run_, {}, simulator); });
  };
  EXPECT_NE(refusal("joint", simulations, nullptr).find("needs a simulator that nrec can call itself"),
            std::string::npos);
  const FunctionSimulator wide(
      "wide", 1, 2, [](std::span<const double>, RandomStream&, std::span<double> x) { x[0] = x[1] = 0; });
  EXPECT_EQ(
      refusal("joint", simulations, &wide),
      "train: the simulator of regime = \"joint\" takes 1 parameters and makes 2 data, but the simulations "
      "have 1 and 1; both must come from the same simulator");
  const FunctionSimulator broken(
      "broken", 1, 1,
      [](std::span<const double>, RandomStream&, std::span<double> x) { x[0] = std::nan(""); });
  EXPECT_NE(
      refusal("joint", simulations, &broken)
          .find("simulation 600, made during training, ended as \"non-finite\"; regime = \"joint\" needs a "
                "simulator that never fails"),
      std::string::npos)
      << refusal("joint", simulations, &broken);
  SimulationSet dropped = simulations;
  dropped.num_dropped = 5;
  EXPECT_NE(refusal("prior", dropped, nullptr).find("regime = \"prior\" with 5 failed simulations"),
            std::string::npos);
}

}  // namespace
}  // namespace nrec
