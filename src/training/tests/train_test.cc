#include "nrec/training/train.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "nrec/core/error.h"
#include "training/tests/failing_problem.h"
#include "training/tests/toy_problem.h"

namespace nrec {
namespace {

using testing::cube_prior;
using testing::saturating_rows;
using testing::short_training;
using testing::small_network;
using testing::toy_prior;
using testing::toy_simulations;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class TrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("nrec_train_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) +
               std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
  ThreadPool pool_{2};
  RunContext run_{.pool = pool_};
};

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
  std::ofstream(checkpoint.path) << "rubbish";
  EXPECT_THROW(train(toy_prior(), simulations, small_network(), short_training(), run_, checkpoint), IoError);
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
            }).find("theta row 3 is outside the support of the prior"),
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

/// Training on simulations of which some failed: a success model comes with the ratio.
class TrainOnFailures : public TrainTest {
 protected:
  TrainingResult train_on(const SimulationSet& set, const RunContext& run,
                          const CheckpointOptions& checkpoint = {}) const {
    return train(cube_prior(1), set, small_network(), short_training(), run, checkpoint);
  }
  std::string bytes_of_estimator(const RatioEstimator& estimator) const {
    save_estimator(estimator, folder_ / "e.safetensors");
    return bytes_of(folder_ / "e.safetensors");
  }
  CheckpointOptions checkpoint() const { return {folder_ / "checkpoint.safetensors", true}; }

  SimulationSet set_ = saturating_rows(600, FailureRule::model, pool_);
};

TEST_F(TrainOnFailures, LearnsFromAllRowsWhereTheyFailAndTheRatioFromSuccesses) {
  const TrainingResult result = train_on(set_, run_);
  ASSERT_TRUE(result.summary.usable);
  const SuccessModel& success = *result.estimator->success;
  EXPECT_EQ(success.kind, SuccessKind::network);
  EXPECT_EQ(success.num_ok, set_.num_rows());
  EXPECT_EQ(success.num_failed, set_.failed_theta.rows());
  EXPECT_EQ(success.num_ok + success.num_failed, 600u);
  EXPECT_EQ(result.summary.num_training_rows + result.summary.num_validation_rows, set_.num_rows());
  EXPECT_EQ(result.summary.success_message, success.sentence());
  EXPECT_GT(result.summary.success_epochs, 0);
  EXPECT_EQ(std::get<std::int64_t>(*result.estimator->settings.find("num_failed")),
            static_cast<std::int64_t>(set_.failed_theta.rows()));
  // The ratio's network is the one that dropping gives.
  const TrainingResult dropped = train_on(saturating_rows(600, FailureRule::drop, pool_), run_);
  EXPECT_TRUE(std::ranges::equal(dropped.estimator->network.weights(), result.estimator->network.weights()));
  EXPECT_FALSE(dropped.estimator->success);
}

TEST_F(TrainOnFailures, WithoutFailuresTheBytesAreThoseOfEveryOtherRule) {
  std::string first;
  for (const FailureRule rule : {FailureRule::stop, FailureRule::drop, FailureRule::model}) {
    const SimulationSet set = without_failures(toy_simulations(600, pool_), rule);
    const TrainingResult result =
        train(toy_prior(), set, small_network(), short_training(), run_, {folder_ / "c.safetensors", false});
    const std::string bytes = bytes_of_estimator(*result.estimator) + bytes_of(folder_ / "c.safetensors");
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << failure_rule_name(rule);
  }
  EXPECT_EQ(first.find("success"), std::string::npos);
  EXPECT_NE(first.find("\"format_version\":\"1\""), std::string::npos);
}

TEST_F(TrainOnFailures, SameBitsForAnyNumberOfThreads) {
  std::string first;
  for (const int threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    const std::string bytes = bytes_of_estimator(*train_on(set_, RunContext{.pool = pool}).estimator);
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << threads << " threads";
  }
}

TEST_F(TrainOnFailures, ResumesToTheSameBitsAfterAStopAnywhere) {
  const std::string unbroken = bytes_of_estimator(*train_on(set_, run_).estimator);
  TrainingResult result;
  int calls = 0, ratio_waits = 0;
  do {
    RunContext run{.pool = pool_};
    run.time_limit = calls == 0 ? 0.0 : 0.002;
    result = train_on(set_, run, checkpoint());
    if (calls == 0) {
      EXPECT_FALSE(result.summary.usable);
    }
    ratio_waits += result.summary.status == TrainingStatus::budget_spent && result.summary.num_epochs == 5;
  } while (result.summary.status == TrainingStatus::budget_spent && ++calls < 100000);
  ASSERT_EQ(result.summary.status, TrainingStatus::epochs_done);
  EXPECT_GT(calls, 2);
  EXPECT_GT(ratio_waits, 0) << "the ratio was finished first at least once, and was not taken for the whole";
  EXPECT_TRUE(bytes_of_estimator(*result.estimator) == unbroken);
}

/// Requests a stop at the first message that contains a text.
class StoppingSink final : public LogSink {
 public:
  StoppingSink(std::string text, StopRequest& stop) : text_(std::move(text)), stop_(stop) {}
  void info(std::string_view text) override {
    if (text.find(text_) != std::string_view::npos) stop_.request(15);
  }

 private:
  std::string text_;
  StopRequest& stop_;
};

TEST_F(TrainOnFailures, AStopWhileLearningFailuresEndsLikeAnyOther) {
  const std::string unbroken = bytes_of_estimator(*train_on(set_, run_).estimator);
  StopRequest stop;
  StoppingSink sink("learning P(ok | theta)", stop);
  const TrainingResult stopped =
      train_on(set_, RunContext{.pool = pool_, .log = sink, .stop = &stop}, checkpoint());
  EXPECT_EQ(stopped.summary.status, TrainingStatus::stopped);
  EXPECT_FALSE(stopped.summary.usable);
  EXPECT_EQ(stopped.summary.num_epochs, 0);
  EXPECT_NE(
      stopped.summary.message.find("learning where simulations fail was cut off after 0 epochs; stopped on "
                                   "request"),
      std::string::npos)
      << stopped.summary.message;
  const TrainingResult resumed = train_on(set_, run_, checkpoint());
  EXPECT_TRUE(bytes_of_estimator(*resumed.estimator) == unbroken);
}

TEST_F(TrainOnFailures, RefusesACheckpointOfOtherFailures) {
  train_on(set_, run_, checkpoint());
  SimulationSet other = set_;
  other.failed_theta(0, 0) *= 0.5;
  EXPECT_NE(error_of([&] { train_on(other, run_, checkpoint()); }).find("belongs to other simulations"),
            std::string::npos);
  other = set_;
  other.failed_theta = Matrix<double>();
  EXPECT_NE(error_of([&] { train_on(other, run_, checkpoint()); }).find("belongs to other simulations"),
            std::string::npos);
}

TEST_F(TrainOnFailures, EstimatorFileRoundTripsIsOfVersionTwoAndRefusesDamage) {
  const RatioEstimator estimator = *train_on(set_, run_).estimator;
  const std::string bytes = bytes_of_estimator(estimator);
  EXPECT_NE(bytes.find("\"format_version\":\"2\""), std::string::npos);
  const RatioEstimator copy = load_estimator(folder_ / "e.safetensors");
  ASSERT_TRUE(copy.success);
  EXPECT_EQ(copy.success->calibration, estimator.success->calibration);
  EXPECT_TRUE(std::ranges::equal(copy.success->network->weights(), estimator.success->network->weights()));
  EXPECT_EQ(copy.success->theta_standardiser, estimator.success->theta_standardiser);
  EXPECT_TRUE(bytes_of_estimator(copy) == bytes);
  // A constant rate has no arrays.
  RatioEstimator constant = estimator;
  constant.success = SuccessModel{.kind = SuccessKind::too_few, .num_ok = 599, .num_failed = 1};
  const std::string small = bytes_of_estimator(constant);
  EXPECT_EQ(load_estimator(folder_ / "e.safetensors").success->num_ok, 599u);
  EXPECT_EQ(small.find("success.input"), std::string::npos);
  const auto refused = [&](const std::function<void(SuccessModel&)>& damage) {
    RatioEstimator bad = estimator;
    damage(*bad.success);
    save_estimator(bad, folder_ / "e.safetensors");
    return error_of([&] { load_estimator(folder_ / "e.safetensors"); });
  };
  EXPECT_NE(refused([](SuccessModel& m) { m.num_failed = 0; }).find("0 failures; the file is damaged"),
            std::string::npos);
  EXPECT_NE(refused([](SuccessModel& m) {
              m.theta_standardiser.scale[0] = 0.0;
            }).find("\"success.theta.scale\" holds a scale that is not > 0"),
            std::string::npos);
  EXPECT_NE(
      refused([](SuccessModel& m) { m.network.reset(); }).find("\"success.hidden_features\" is missing"),
      std::string::npos);
  // Unknown versions are refused with the known ones.
  std::string newer = bytes;
  newer.replace(newer.find("\"format_version\":\"2\"") + 18, 1, "3");
  std::ofstream(folder_ / "e.safetensors", std::ios::binary) << newer;
  EXPECT_NE(error_of([&] {
              load_estimator(folder_ / "e.safetensors");
            }).find("estimator format version 3, but this program reads versions 1 and 2"),
            std::string::npos);
  for (std::size_t at = 8; at < bytes.size(); at += 97) {  // an error or a loadable file, never a crash
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
    std::ofstream(folder_ / "e.safetensors", std::ios::binary) << damaged;
    try {
      load_estimator(folder_ / "e.safetensors");
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace nrec
