// gradients = "accumulate": the sum of gradients that the published experiments took.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "nrec/core/error.h"
#include "nrec/io/safetensors.h"
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

class AccumulatedGradients : public testing::TrainTest {
 protected:
  static constexpr double kClip = 0.3;  // small enough to be met in most steps

  TrainingOptions accumulating() const {
    TrainingOptions options = short_training();
    options.gradients = "accumulate";
    options.clip_max_norm = kClip;
    options.weight_decay = 0.0;
    return options;
  }
  PairNetwork network() const {
    return PairNetwork::initialised(
        {.dim_theta = 1, .dim_x = 1, .hidden_features = 16, .num_blocks = 1, .norm = Norm::layer}, run_.seed);
  }
  TrainingData data(const TrainingOptions& options) {
    return prepare_training_data(toy_prior(), toy_simulations(600, pool_), options, run_);
  }
};

double largest_difference(std::span<const float> a, const std::vector<double>& b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::fabs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

/// The loop as the published code runs it, in double but for the gradients: cleared once per epoch.
std::vector<double> published_loop(Objective& objective, PairNetwork network, PairNetworkStep& step,
                                   int epochs, const TrainingOptions& options, int& clipped) {
  const std::size_t size = network.weights().size();
  std::vector<double> sum(size), m(size), v(size);
  std::vector<double> weights(network.weights().begin(), network.weights().end());
  std::vector<float> gradient(size);
  double t = 0.0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::ranges::fill(sum, 0.0);
    for (int i = 0; i < objective.steps_per_epoch(); ++i) {
      std::ranges::transform(weights, network.weights().begin(),
                             [](double value) { return static_cast<float>(value); });
      step.loss_and_gradient(network, objective.load_batch(static_cast<std::int64_t>(t)),
                             objective.row_loss(), gradient);
      double norm = 0.0;
      for (std::size_t p = 0; p < size; ++p) {
        sum[p] += gradient[p];
        norm += sum[p] * sum[p];
      }
      const double factor = options.clip_max_norm / (std::sqrt(norm) + 1e-6);
      if (factor < 1.0) {
        ++clipped;
        for (double& value : sum) value *= factor;
      }
      t += 1.0;
      for (std::size_t p = 0; p < size; ++p) {
        m[p] = 0.9 * m[p] + 0.1 * sum[p];
        v[p] = 0.999 * v[p] + 0.001 * sum[p] * sum[p];
        const double m_hat = m[p] / (1.0 - std::pow(0.9, t));
        const double v_hat = v[p] / (1.0 - std::pow(0.999, t));
        weights[p] -= options.learning_rate * m_hat / (std::sqrt(v_hat) + 1e-8);
      }
    }
  }
  return weights;
}

TEST_F(AccumulatedGradients, AreThoseOfALoopWrittenByHand) {
  TrainingOptions options = accumulating();
  const TrainingData training = data(options);
  ContrastiveObjective objective(training, run_.seed);
  ASSERT_EQ(objective.steps_per_epoch(), 4);
  const auto step = make_pair_step("auto", pool_);
  int clipped = 0;
  const std::vector<double> expected = published_loop(objective, network(), *step, 2, options, clipped);
  EXPECT_GE(clipped, 3);  // the clipping in place is part of the quirk
  const auto trained = [&] {
    Trainer trainer(objective, options, run_);
    TrainerState state = TrainerState::start(network());
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (int i = 0; i < 4; ++i) trainer.train_step(state);
      trainer.finish_epoch(state);
    }
    return largest_difference(std::as_const(state.network).weights(), expected);
  };
  EXPECT_LT(trained(), 2e-5);
  options.gradients = "reset";
  EXPECT_GT(trained(), 1e-3);  // steps of 2e-3 in other directions
}

TEST_F(AccumulatedGradients, OfOneStepAnEpochAreItsGradients) {
  TrainingOptions options = accumulating();
  options.training_batch_size = 1024;  // all 540 training rows
  const SimulationSet simulations = toy_simulations(600, pool_);
  const auto weights = [&] {
    const TrainingResult result = train(toy_prior(), simulations, small_network(), options, run_);
    const auto all = std::as_const(result.estimator->network).weights();
    return std::vector<float>(all.begin(), all.end());
  };
  const std::vector<float> accumulated = weights();
  options.gradients = "reset";
  EXPECT_EQ(weights(), accumulated);
}

TEST_F(AccumulatedGradients, GoOnInTheMiddleOfAnEpoch) {
  const TrainingOptions options = accumulating();
  const TrainingData training = data(options);
  const auto started = [&] {
    TrainerState state = TrainerState::start(network());
    state.gradient_sum.resize(state.network.weights().size());
    return state;
  };
  const auto steps = [&](TrainerState& state, int count) {
    ContrastiveObjective objective(training, run_.seed);
    Trainer trainer(objective, options, run_);
    for (int i = 0; i < count; ++i) {
      trainer.train_step(state);
      if (state.step_in_epoch == trainer.steps_per_epoch()) trainer.finish_epoch(state);
    }
  };
  TrainerState unbroken = started();
  steps(unbroken, 11);
  TrainingState first{.ratio = started(), .success = {}};
  steps(first.ratio, 6);  // two steps into the second epoch of four
  const auto path = folder_ / "checkpoint.safetensors";
  save_checkpoint(first, "name", path);
  TrainingState second{.ratio = started(), .success = {}};
  load_checkpoint("name", path, second);
  steps(second.ratio, 5);
  EXPECT_TRUE(std::ranges::equal(second.ratio.network.weights(), unbroken.network.weights()));
  EXPECT_EQ(second.ratio.gradient_sum, unbroken.gradient_sum);
  // Without the sum the steps would be others.
  std::ranges::fill(first.ratio.gradient_sum, 0.0f);
  steps(first.ratio, 5);
  EXPECT_FALSE(std::ranges::equal(first.ratio.network.weights(), unbroken.network.weights()));
  // A file that has lost it is refused.
  TensorFile file = read_safetensors(path);
  std::erase_if(file.tensors, [](const NamedTensor& tensor) { return tensor.name == "gradient_sum"; });
  write_safetensors(path, file.tensors, file.metadata);
  EXPECT_NE(error_of([&] {
              load_checkpoint("name", path, second);
            }).find("the array \"gradient_sum\" is missing; the file is damaged"),
            std::string::npos);
}

TEST_F(AccumulatedGradients, ResumeToTheSameBits) {
  const SimulationSet simulations = toy_simulations(600, pool_);
  const TrainingOptions options = accumulating();
  const std::string unbroken = bytes(train(toy_prior(), simulations, small_network("batch"), options, run_));
  const CheckpointOptions checkpoint{folder_ / "checkpoint.safetensors", true};
  std::string pieces;
  bool in_the_middle = false;
  for (int piece = 0; pieces.empty() && piece < 100000; ++piece) {
    RunContext run{.pool = pool_};
    run.time_limit = piece == 0 ? 0.0 : 0.0003;
    const TrainingResult result =
        train(toy_prior(), simulations, small_network("batch"), options, run, checkpoint);
    if (result.summary.status == TrainingStatus::epochs_done) pieces = bytes(result);
    const std::vector<std::int64_t> counters =
        i64_values(*read_safetensors(checkpoint.path).find("counters"));
    in_the_middle = in_the_middle || counters[1] > 0;
  }
  EXPECT_TRUE(unbroken == pieces);
  EXPECT_TRUE(in_the_middle);
  TrainingOptions other = options;
  other.gradients = "reset";
  EXPECT_NE(error_of([&] {
              train(toy_prior(), simulations, small_network("batch"), other, run_, checkpoint);
            }).find("belongs to other simulations, settings, seed"),
            std::string::npos);
}

}  // namespace
}  // namespace nrec
