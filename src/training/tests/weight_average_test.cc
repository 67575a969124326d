// ema_epochs and weight_decay: the average of the weights that is kept, and how weights shrink.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "nrec/core/error.h"
#include "training/checkpoint.h"
#include "training/contrastive_objective.h"
#include "training/tests/train_fixture.h"

namespace nrec {
namespace {

using testing::error_of;
using testing::short_training;
using testing::small_network;
using testing::toy_prior;
using testing::toy_simulations;

constexpr std::int64_t kStepsPerEpoch = 4;  // 540 training rows, mini-batches of 128

class WeightAverage : public testing::TrainTest {
 protected:
  static TrainingOptions with(double weight_decay, double ema_epochs) {
    TrainingOptions options = short_training();
    options.weight_decay = weight_decay;
    options.ema_epochs = ema_epochs;
    return options;
  }
  TrainerState started(const TrainingOptions& options, Norm norm = Norm::batch) const {
    TrainerState state = TrainerState::start(PairNetwork::initialised(
        {.dim_theta = 1, .dim_x = 1, .hidden_features = 16, .num_blocks = 2, .norm = norm}, run_.seed));
    if (options.ema_epochs > 0) state.average = state.network;
    return state;
  }
  /// Steps, and the ends of the epochs that they fill.
  void take_steps(TrainerState& state, const TrainingOptions& options, int count) {
    ContrastiveObjective objective(data_, run_.seed);
    Trainer trainer(objective, options, run_);
    ASSERT_EQ(trainer.steps_per_epoch(), kStepsPerEpoch);
    for (int i = 0; i < count; ++i) {
      trainer.train_step(state);
      if (state.step_in_epoch == kStepsPerEpoch) trainer.finish_epoch(state);
    }
  }

  const TrainingData data_ =
      prepare_training_data(toy_prior(), toy_simulations(600, pool_), short_training(), run_);
};

/// Weights and running statistics, one after the other.
std::vector<double> numbers(const PairNetwork& network) {
  std::vector<double> all(network.weights().begin(), network.weights().end());
  all.insert(all.end(), network.statistics().begin(), network.statistics().end());
  return all;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

TEST_F(WeightAverage, IsTheOneOfALoopWrittenByHand) {
  for (const double epochs : {0.1, 0.5, 2.0}) {  // less than a step, two steps, eight steps
    const TrainingOptions options = with(0.3, epochs);
    TrainerState state = started(options);
    std::vector<double> expected = numbers(state.network);
    for (int t = 1; t <= 100; ++t) {
      take_steps(state, options, 1);
      const std::vector<double> now = numbers(state.network);
      const double share = std::min(1.0, std::max(1.0 / (epochs * kStepsPerEpoch), 10.0 / (t + 10.0)));
      for (std::size_t i = 0; i < now.size(); ++i) expected[i] += share * (now[i] - expected[i]);
    }
    EXPECT_LT(largest_difference(numbers(*state.average), expected), 2e-6) << epochs;
    const double lag = largest_difference(numbers(*state.average), numbers(state.network));
    if (epochs < 0.25)
      EXPECT_EQ(lag, 0.0);
    else
      EXPECT_GT(lag, 1e-3) << epochs;
  }
}

TEST_F(WeightAverage, IsWhatIsMeasuredAndKept) {
  const TrainingOptions options = with(0.0, 2.0);
  TrainerState state = started(options);
  take_steps(state, options, kStepsPerEpoch);
  ASSERT_EQ(state.best_epoch, 1);
  EXPECT_EQ(numbers(state.best), numbers(*state.average));
  EXPECT_NE(numbers(state.best), numbers(state.network));
  ContrastiveObjective objective(data_, run_.seed);
  const auto step = make_pair_step("auto", pool_);
  EXPECT_EQ(state.history[0].validation_loss, objective.measure(*step, *state.average, true).validation_loss);
  EXPECT_NE(state.history[0].validation_loss, objective.measure(*step, state.network, true).validation_loss);
  // Without it, the weights are.
  const TrainingOptions plain = with(0.0, 0.0);
  TrainerState other = started(plain);
  take_steps(other, plain, kStepsPerEpoch);
  EXPECT_EQ(numbers(other.best), numbers(other.network));
  EXPECT_EQ(numbers(other.network), numbers(state.network)) << "the average does not change the steps";
}

TEST_F(WeightAverage, StartsAgainWhereAPlateauGoesBackToTheBestState) {
  TrainingOptions options = with(0.0, 2.0);
  options.learning_rate_schedule = "plateau";
  TrainerState state = started(options, Norm::layer);
  take_steps(state, options, 10 * kStepsPerEpoch);
  options.learning_rate = 0.5;  // no later epoch is better
  for (int epoch = 0; epoch < 30 && state.num_reductions == 0; ++epoch)
    take_steps(state, options, kStepsPerEpoch);
  ASSERT_EQ(state.num_reductions, 1);
  EXPECT_EQ(numbers(state.network), numbers(state.best));
  EXPECT_EQ(numbers(*state.average), numbers(state.best));
}

TEST_F(WeightAverage, GoesOnFromACheckpoint) {
  const TrainingOptions options = with(0.3, 2.0);
  TrainerState unbroken = started(options);
  take_steps(unbroken, options, 11);
  TrainingState first{.ratio = started(options), .success = {}};
  take_steps(first.ratio, options, 6);  // two steps into the second epoch
  const auto path = folder_ / "checkpoint.safetensors";
  save_checkpoint(first, "name", path);
  TrainingState second{.ratio = started(options), .success = {}};
  load_checkpoint("name", path, second);
  take_steps(second.ratio, options, 5);
  EXPECT_EQ(numbers(second.ratio.network), numbers(unbroken.network));
  EXPECT_EQ(numbers(*second.ratio.average), numbers(*unbroken.average));
  EXPECT_EQ(numbers(second.ratio.best), numbers(unbroken.best));
  // A file without the average is no checkpoint of such a run.
  first.ratio.average.reset();
  save_checkpoint(first, "name", path);
  EXPECT_NE(error_of([&] {
              load_checkpoint("name", path, second);
            }).find("the array \"average.weights\" is missing; the file is damaged"),
            std::string::npos);
}

TEST_F(WeightAverage, AndDecayBelongToTheNameOfARun) {
  const SimulationSet simulations = toy_simulations(600, pool_);
  const CheckpointOptions checkpoint{folder_ / "checkpoint.safetensors", true};
  train(toy_prior(), simulations, small_network(), with(0.3, 2.0), run_, checkpoint);
  for (const auto& [weight_decay, ema_epochs] : {std::pair{0.2, 2.0}, {0.0, 2.0}, {0.3, 1.0}, {0.3, 0.0}})
    EXPECT_NE(error_of([&] {
                train(toy_prior(), simulations, small_network(), with(weight_decay, ema_epochs), run_,
                      checkpoint);
              }).find("belongs to other simulations, settings, seed"),
              std::string::npos)
        << weight_decay << " " << ema_epochs;
}

TEST_F(WeightAverage, DecayShrinksTheMatricesByItsShareOfTheRateAndNothingElse) {
  for (const Norm norm : {Norm::batch, Norm::layer, Norm::none}) {
    TrainingOptions options = with(0.0, 0.0);
    options.learning_rate = 0.02;
    TrainerState plain = started(options, norm), decayed = started(options, norm);
    const std::vector<NetworkTensor> before = plain.network.tensors();
    take_steps(plain, options, 1);
    options.weight_decay = 10.0;
    take_steps(decayed, options, 1);
    const std::vector<NetworkTensor> without = plain.network.tensors(), with = decayed.network.tensors();
    int matrices = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const bool is_matrix = before[i].name.ends_with("weight");
      matrices += is_matrix;
      for (std::size_t j = 0; j < before[i].values.size(); ++j) {
        const double shrunk = is_matrix ? 0.02 * 10.0 * before[i].values[j] : 0.0;
        ASSERT_NEAR(with[i].values[j], without[i].values[j] - shrunk, is_matrix ? 1e-6 : 0.0)
            << before[i].name << " " << j;
      }
    }
    EXPECT_EQ(matrices, 7) << "two of the inputs, two of each block, one of the output";
  }
}

TEST_F(WeightAverage, DecayOfMoreThanAllEndsAtNothing) {
  TrainingOptions options = with(100.0, 0.0);
  options.learning_rate = 0.5;
  TrainerState state = started(options, Norm::none);
  take_steps(state, options, 1);
  double largest = 0.0;  // what one step of Adam adds to weights of 0
  for (const NetworkTensor& tensor : state.network.tensors()) {
    if (!tensor.name.ends_with("weight")) continue;
    for (const float value : tensor.values)
      largest = std::max(largest, std::fabs(static_cast<double>(value)));
  }
  EXPECT_LT(largest, 0.5 * 1.001);
}

}  // namespace
}  // namespace nrec
