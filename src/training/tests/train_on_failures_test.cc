// Training on simulations of which some failed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>

#include "training/tests/failing_problem.h"
#include "training/tests/train_fixture.h"

namespace nrec {
namespace {

using testing::bytes_of;
using testing::cube_prior;
using testing::error_of;
using testing::saturating_rows;
using testing::short_training;
using testing::small_network;
using testing::toy_prior;
using testing::toy_simulations;
using testing::TrainTest;

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
  // What is cut off depends on the machine's speed: parts of several lengths, until the ratio was finished first at least once.
  int ratio_waits = 0;
  for (double seconds = 0.002; ratio_waits == 0 && seconds < 1.0; seconds *= 2.0) {
    std::filesystem::remove(folder_ / "checkpoint.safetensors");
    TrainingResult result;
    int calls = 0;
    do {
      RunContext run{.pool = pool_};
      run.time_limit = calls == 0 ? 0.0 : seconds;
      result = train_on(set_, run, checkpoint());
      if (calls == 0) {
        EXPECT_FALSE(result.summary.usable);
      }
      ratio_waits += result.summary.status == TrainingStatus::budget_spent && result.summary.num_epochs == 5;
    } while (result.summary.status == TrainingStatus::budget_spent && ++calls < 100000);
    ASSERT_EQ(result.summary.status, TrainingStatus::epochs_done);
    EXPECT_GT(calls, 0);
    EXPECT_TRUE(bytes_of_estimator(*result.estimator) == unbroken);
  }
  EXPECT_GT(ratio_waits, 0) << "and was not taken for the whole";
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
