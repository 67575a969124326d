#include "nrec/training/train.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "nrec/core/error.h"
#include "training/tests/train_fixture.h"

namespace nrec {
namespace {

using testing::bytes_of;
using testing::error_of;
using testing::short_training;
using testing::small_network;
using testing::toy_prior;
using testing::toy_simulations;
using testing::TrainTest;

TEST_F(TrainTest, LearnsTheToyWithoutTheShiftOfTheErratum) {
  // The right class weights give mean log Z near 0; weights that disagree with gamma / K give log 9 = 2.2.
  TrainingOptions options = short_training();
  options.max_num_epochs = 40;
  options.learning_rate_schedule = "cosine";
  const SimulationSet simulations = toy_simulations(4000, pool_);
  const TrainingResult result = train(toy_prior(), simulations, small_network(), options, run_);
  ASSERT_TRUE(result.summary.usable);
  const EpochRecord& best =
      result.estimator->history[static_cast<std::size_t>(result.summary.best_epoch) - 1];
  EXPECT_NEAR(best.mean_ratio, 1.0, 0.25);
  EXPECT_GT(best.i1, 1.4);
  EXPECT_LT(best.i1, 2.178 + 0.15);  // never above the true mutual information beyond its error
}

TEST_F(TrainTest, SameBitsForAnyNumberOfThreadsAndEveryNorm) {
  const SimulationSet simulations = toy_simulations(600, pool_);
  for (const char* norm : {"batch", "layer", "none"}) {
    std::string first;
    for (const int threads : {1, 2, 3, 7}) {
      ThreadPool pool(threads);
      const RunContext run{.pool = pool};
      const TrainingResult result =
          train(toy_prior(), simulations, small_network(norm), short_training(), run);
      save_estimator(*result.estimator, folder_ / "e.safetensors");
      const std::string bytes = bytes_of(folder_ / "e.safetensors");
      if (first.empty()) first = bytes;
      EXPECT_TRUE(first == bytes) << norm << " with " << threads << " threads";
    }
  }
}

TEST_F(TrainTest, ResumesToTheSameBitsAfterAStopAnywhere) {
  const SimulationSet simulations = toy_simulations(600, pool_);
  const TrainingResult unbroken =
      train(toy_prior(), simulations, small_network("batch"), short_training(), run_);
  save_estimator(*unbroken.estimator, folder_ / "unbroken.safetensors");
  // A time limit of 0 stops before the first step; tiny ones stop at arbitrary later ones, in the middle of an epoch, too.
  const CheckpointOptions checkpoint{folder_ / "checkpoint.safetensors", true};
  TrainingStatus status = TrainingStatus::budget_spent;
  for (int piece = 0; status == TrainingStatus::budget_spent && piece < 100000; ++piece) {
    RunContext run{.pool = pool_};
    run.time_limit = piece == 0 ? 0.0 : 0.0003;
    const TrainingResult result =
        train(toy_prior(), simulations, small_network("batch"), short_training(), run, checkpoint);
    status = result.summary.status;
    if (piece == 0) {
      EXPECT_EQ(status, TrainingStatus::budget_spent);
      EXPECT_FALSE(result.summary.usable);
    }
    if (status == TrainingStatus::epochs_done)
      save_estimator(*result.estimator, folder_ / "pieces.safetensors");
  }
  ASSERT_EQ(status, TrainingStatus::epochs_done);
  EXPECT_TRUE(bytes_of(folder_ / "unbroken.safetensors") == bytes_of(folder_ / "pieces.safetensors"));
}

TEST_F(TrainTest, RefusesACheckpointOfAnotherRun) {
  const SimulationSet simulations = toy_simulations(600, pool_);
  const CheckpointOptions checkpoint{folder_ / "checkpoint.safetensors", true};
  train(toy_prior(), simulations, small_network(), short_training(), run_, checkpoint);
  TrainingOptions other = short_training();
  other.gamma = 2.0;
  EXPECT_NE(error_of([&] {
              train(toy_prior(), simulations, small_network(), other, run_, checkpoint);
            }).find("belongs to other simulations, settings, seed"),
            std::string::npos);
  TrainingOptions longer = short_training();
  longer.max_num_epochs = 7;  // a budget: may be raised
  EXPECT_EQ(train(toy_prior(), simulations, small_network(), longer, run_, checkpoint).summary.num_epochs, 7);
  std::string newer = bytes_of(checkpoint.path);
  newer.replace(newer.find("\"format_version\":\"1\"") + 18, 1, "9");
  std::ofstream(checkpoint.path, std::ios::binary) << newer;
  EXPECT_NE(error_of([&] {
              train(toy_prior(), simulations, small_network(), longer, run_, checkpoint);
            }).find("checkpoint format version 9, but this program reads version 1; resume with the nrec"),
            std::string::npos);
  std::ofstream(checkpoint.path) << "rubbish";
  EXPECT_THROW(train(toy_prior(), simulations, small_network(), short_training(), run_, checkpoint), IoError);
}

TEST_F(TrainTest, TheLengthOfACosineBelongsToIt) {
  const SimulationSet simulations = toy_simulations(600, pool_);
  const CheckpointOptions checkpoint{folder_ / "checkpoint.safetensors", true};
  TrainingOptions options = short_training();
  options.learning_rate_schedule = "cosine";
  train(toy_prior(), simulations, small_network(), options, run_, checkpoint);
  options.max_num_epochs = 7;
  EXPECT_NE(error_of([&] {
              train(toy_prior(), simulations, small_network(), options, run_, checkpoint);
            }).find("max_num_epochs is one of the settings"),
            std::string::npos);
  // Cut off, it says that its rate had not fallen.
  RunContext run{.pool = pool_};
  run.time_limit = 0.0;
  EXPECT_NE(train(toy_prior(), simulations, small_network(), options, run)
                .summary.message.find("0 epochs (of 7; the learning rate had not fallen to 0 yet"),
            std::string::npos);
}

TEST_F(TrainTest, WhatIsLeftToItIsTheSameWrittenOut) {
  const SimulationSet simulations = toy_simulations(600, pool_);
  const TrainingOptions automatic = {.num_classes = 5, .max_num_epochs = 4};
  const TrainingResult a = train(toy_prior(), simulations, small_network(), automatic, run_);
  const TrainingResult b =
      train(toy_prior(), simulations, small_network(), settled_options(automatic, 600), run_);
  save_estimator(*a.estimator, folder_ / "a.safetensors");
  save_estimator(*b.estimator, folder_ / "b.safetensors");
  EXPECT_TRUE(bytes_of(folder_ / "a.safetensors") == bytes_of(folder_ / "b.safetensors"));
  EXPECT_EQ(a.summary.batch_size, 33u);  // 540 training rows, 16 steps
}

TEST_F(TrainTest, HandlesOrRefusesTinySets) {
  const auto message = [&](std::size_t rows, int num_classes) {
    TrainingOptions options = short_training();
    options.num_classes = num_classes;
    options.max_num_epochs = 2;
    return error_of(
        [&] { train(toy_prior(), toy_simulations(rows, pool_), small_network(), options, run_); });
  };
  EXPECT_EQ(message(1, 9),
            "train: 1 simulations cannot be split into training and validation rows with validation_fraction "
            "= 0.1; simulate more");
  EXPECT_EQ(message(2, 9),
            "train: num_classes = 9 needs a batch of at least 10 rows but only 1 of the 2 simulations are "
            "training rows; simulate more");
  EXPECT_EQ(message(10, 9),
            "train: num_classes = 9 needs a batch of at least 10 rows but only 9 of the 10 simulations are "
            "training rows; simulate more or lower num_classes to at most 8");
  EXPECT_EQ(message(60, 99),
            "train: num_classes = 99 needs a batch of at least 100 rows but only 54 of the 60 simulations "
            "are training rows; simulate more or lower num_classes to at most 53");
  EXPECT_EQ(message(1000, 128),
            "train: num_classes = 128 needs a batch of at least 129 rows but training_batch_size = 128; "
            "raise it or lower num_classes to at most 127");
  EXPECT_EQ(message(10, 8), "no error");
  EXPECT_EQ(message(60, 53), "no error");
  EXPECT_EQ(message(1000, 127), "no error");
}

TEST_F(TrainTest, SaysWhenValidationRowsAreFewerThanACandidateSet) {
  TrainingOptions options = short_training();
  options.num_classes = 20;
  options.max_num_epochs = 1;
  const TrainingResult result =
      train(toy_prior(), toy_simulations(100, pool_), small_network(), options, run_);
  ASSERT_EQ(result.summary.warnings.size(), 1u);
  EXPECT_NE(result.summary.warnings[0].find("only 10 validation rows"), std::string::npos);
}

TEST_F(TrainTest, RefusesBadRows) {
  SimulationSet set = toy_simulations(600, pool_);
  set.x(17, 0) = std::nan("");
  EXPECT_NE(error_of([&] {
              train(toy_prior(), set, small_network(), short_training(), run_);
            }).find("train: x[17, 0] = nan; rows of failed simulations"),
            std::string::npos);
  set = toy_simulations(600, pool_);
  set.status[5] = RowStatus::timed_out;
  EXPECT_NE(
      error_of([&] {
        train(toy_prior(), set, small_network(), short_training(), run_);
      }).find("train: row 5 has the status \"timed out\"; rows of failed simulations must be dealt with"),
      std::string::npos);
  set = toy_simulations(600, pool_);
  set.theta(3, 0) = 2.0;
  EXPECT_NE(error_of([&] {
              train(toy_prior(), set, small_network(), short_training(), run_);
            }).find("train: theta[3, 0] (theta) = 2 is outside the prior, -1.7320508"),
            std::string::npos);
  set = toy_simulations(600, pool_);
  for (std::size_t i = 0; i < 600; ++i) set.theta(i, 0) = 0.5;
  EXPECT_NE(error_of([&] {
              train(toy_prior(), set, small_network(), short_training(), run_);
            }).find("theta column 0 (theta) is constant"),
            std::string::npos);
  set = toy_simulations(600, pool_);
  set.x = Matrix<double>(599, 1);
  EXPECT_NE(error_of([&] {
              train(toy_prior(), set, small_network(), short_training(), run_);
            }).find("theta has 600 rows but x has 599"),
            std::string::npos);
}

TEST_F(TrainTest, DivergenceIsAStatusNotAnException) {
  TrainingOptions options = short_training();
  options.learning_rate = 1.0;
  options.clip_max_norm = 0.0;
  SimulationSet set = toy_simulations(600, pool_);
  for (std::size_t i = 0; i < 600; ++i)
    set.x(i, 0) = i == 0 ? 1e300 : 0.0;  // float32 overflows in the network
  options.standardise_x = "none";
  const TrainingResult result = train(toy_prior(), set, small_network("none"), options, run_);
  EXPECT_EQ(result.summary.status, TrainingStatus::diverged);
  EXPECT_NE(result.summary.message.find("lower learning_rate"), std::string::npos);
}

TEST_F(TrainTest, StopsWhenTheValidationLossStopsImproving) {
  TrainingOptions options = short_training();
  options.stop_after_epochs = 2;
  options.learning_rate = 0.05;
  options.max_num_epochs = 500;
  const TrainingResult result =
      train(toy_prior(), toy_simulations(600, pool_), small_network(), options, run_);
  EXPECT_EQ(result.summary.status, TrainingStatus::converged);
  EXPECT_EQ(result.summary.num_epochs, result.summary.best_epoch + 2);
}

TEST_F(TrainTest, PlateauScheduleConvergesAndResumesToTheSameBits) {
  TrainingOptions options = short_training();
  options.learning_rate = 0.02;
  options.learning_rate_schedule = "plateau";
  options.max_num_epochs = 500;
  const SimulationSet simulations = toy_simulations(600, pool_);
  const TrainingResult unbroken = train(toy_prior(), simulations, small_network(), options, run_);
  EXPECT_EQ(unbroken.summary.status, TrainingStatus::converged);
  EXPECT_NE(unbroken.summary.message.find("6 halvings of the learning rate"), std::string::npos)
      << unbroken.summary.message;
  save_estimator(*unbroken.estimator, folder_ / "unbroken.safetensors");
  // Three epochs at a time, through every halving.
  const CheckpointOptions checkpoint{folder_ / "checkpoint.safetensors", true};
  for (options.max_num_epochs = 3; options.max_num_epochs < unbroken.summary.num_epochs;
       options.max_num_epochs += 3) {
    EXPECT_EQ(train(toy_prior(), simulations, small_network(), options, run_, checkpoint).summary.status,
              TrainingStatus::epochs_done);
  }
  options.max_num_epochs = 500;
  const TrainingResult last = train(toy_prior(), simulations, small_network(), options, run_, checkpoint);
  EXPECT_EQ(last.summary.status, TrainingStatus::converged);
  save_estimator(*last.estimator, folder_ / "pieces.safetensors");
  EXPECT_TRUE(bytes_of(folder_ / "unbroken.safetensors") == bytes_of(folder_ / "pieces.safetensors"));
}

TEST_F(TrainTest, ValidationRowsAreTheOnesLeftOutOfTraining) {
  const auto rows = validation_rows(1000, 0.1, 3);
  EXPECT_EQ(rows.size(), 100u);
  EXPECT_EQ(rows, validation_rows(1000, 0.1, 3));
  EXPECT_NE(rows, validation_rows(1000, 0.1, 4));
}

TEST_F(TrainTest, EstimatorFileRoundTripsAndRefusesDamage) {
  const TrainingResult result =
      train(toy_prior(), toy_simulations(600, pool_), small_network("batch"), short_training(), run_);
  const auto path = folder_ / "e.safetensors";
  save_estimator(*result.estimator, path);
  const RatioEstimator copy = load_estimator(path);
  save_estimator(copy, folder_ / "copy.safetensors");
  const std::string bytes = bytes_of(path);
  EXPECT_TRUE(bytes == bytes_of(folder_ / "copy.safetensors"));
  EXPECT_EQ(copy.prior.terms(), result.estimator->prior.terms());
  for (const std::size_t cut : {std::size_t{0}, std::size_t{7}, bytes.size() / 2, bytes.size() - 1}) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, cut);
    EXPECT_THROW(load_estimator(path), IoError) << cut;
  }
  // Scales of 0 and shifts that are no numbers are damage, too.
  const auto refused = [&](const std::function<void(RatioEstimator&)>& damage) {
    RatioEstimator bad = *result.estimator;
    damage(bad);
    save_estimator(bad, path);
    EXPECT_THROW(load_estimator(path), IoError);
  };
  refused([](RatioEstimator& e) { e.theta_standardiser.scale[0] = 0.0; });
  refused([](RatioEstimator& e) { e.x_standardiser.scale[0] = std::nan(""); });
  refused([](RatioEstimator& e) { e.theta_standardiser.shift[0] = std::nan(""); });
  refused([](RatioEstimator& e) { e.x_low[0] = std::nan(""); });
  // Names that a terminal would obey: as if an older program had written them.
  std::string named = bytes;
  const std::string name = copy.prior.names()[0];
  const std::string old_names = "\\\"prior.0.names\\\":[\\\"" + name + "\\\"";
  const std::size_t at_names = named.find(old_names);
  ASSERT_NE(at_names, std::string::npos);
  named.replace(at_names + old_names.size() - name.size() - 2, 1, std::string("\x7f"));
  std::ofstream(path, std::ios::binary) << named;
  EXPECT_NE(error_of([&] { load_estimator(path); }).find("e.safetensors: prior: the parameter name \"\\x7f"),
            std::string::npos);
  // A byte of the header or the arrays changed anywhere: an error, or a loadable file, never a crash.
  for (std::size_t at = 8; at < bytes.size(); at += 97) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
    std::ofstream(path, std::ios::binary) << damaged;
    try {
      load_estimator(path);
    } catch (const Error&) {
    }
  }
  EXPECT_NE(error_of([&] {
              result.estimator->encode_x(std::vector<double>{1.0, 2.0});
            }).find("x_o has 2 numbers; the simulations have 1 columns"),
            std::string::npos);
  EXPECT_NE(
      error_of([&] { result.estimator->encode_x(std::vector<double>{std::nan("")}); }).find("x_o[0] = nan"),
      std::string::npos);
}

TEST_F(TrainTest, AcceptsAPriorGivenBySamples) {
  const SimulationSet simulations = toy_simulations(600, pool_);
  const Prior prior = Prior::from_samples({"theta"}, simulations.theta);
  const TrainingResult result = train(prior, simulations, small_network(), short_training(), run_);
  ASSERT_TRUE(result.summary.usable);
  save_estimator(*result.estimator, folder_ / "e.safetensors");
  EXPECT_EQ(load_estimator(folder_ / "e.safetensors").prior.samples().rows(), 600u);
}

}  // namespace
}  // namespace nrec
