// Signals, budgets and sudden ends: what is left is sound and goes on to the same result.
#include <signal.h>

#include <chrono>
#include <thread>

#include "nrec/io/json.h"
#include "nrec/training/train.h"
#include "toy_problem.h"

namespace nrec::cli {
namespace {

/// Enough epochs that a signal always comes before the end of the first part.
const std::string kLong =
    "[network]\nhidden_features = 16\nnum_blocks = 1\nnorm = \"batch\"\n[training]\nnum_classes = "
    "9\ntraining_batch_size = 64\nlearning_rate_schedule = \"constant\"\nstop_after_epochs = "
    "0\n[sampling]\nnum_samples = 200\n";

class StopResume : public ToyTest {
 protected:
  void SetUp() override {
    ToyTest::SetUp();
    write("p.toml", kParameters + kSimulations + kObservation + kLong);
  }
  /// Waits until a file is there; a run that ends before is a failure of the test.
  bool wait_for(const std::string& name) const {
    for (int i = 0; i < 3000; ++i) {
      if (exists(name)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  std::int64_t epochs(const std::string& folder) const {
    const Record record = record_from_json(content(folder + "/record.json"), "record");
    return std::get<std::int64_t>(*record.find("training.num_epochs"));
  }
};

TEST_F(StopResume, SigtermSavesTheStateAndSaysHowToGoOn) {
  for (const int signal : {SIGTERM, SIGINT}) {
    std::filesystem::remove_all(folder_ / "p_run");
    RunningProgram program = start({"infer", "p.toml", "--max-num-epochs", "10000000"});
    ASSERT_TRUE(wait_for("p_run/checkpoint.safetensors"));
    program.send(signal);
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 128 + signal) << outcome.err;
    expect_in(outcome.err, "stopping after this step");
    expect_in(outcome.last_line(), "nrec infer: stopped: ");
    expect_in(outcome.last_line(), "to go on: nrec infer p.toml --max-num-epochs 10000000 --resume");
    EXPECT_FALSE(exists("p_run/estimator.safetensors"));
  }
  // A length just beyond where it stopped: on from there, and the same in one piece.
  const std::string length = std::to_string(epochs("p_run") + 5);
  const Outcome resumed = run({"infer", "p.toml", "--max-num-epochs", length, "--resume"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_in(resumed.err, "resuming training after " + std::to_string(std::stoll(length) - 5) + " epochs");
  ASSERT_EQ(run({"infer", "p.toml", "--max-num-epochs", length, "--out", "unbroken"}).code, 0);
  EXPECT_EQ(content("p_run/estimator.safetensors"), content("unbroken/estimator.safetensors"));
  EXPECT_EQ(content("p_run/draws.npz"), content("unbroken/draws.npz"));
}

TEST_F(StopResume, ASuddenEndAtAnyMomentIsNoLoss) {
  const Words words = {"infer", "p.toml", "--max-num-epochs", "600", "--resume"};
  int kills = 0;
  for (int attempt = 0; attempt < 8; ++attempt) {
    RunningProgram program = start(words);
    std::this_thread::sleep_for(std::chrono::milliseconds(40 * (attempt + 1)));
    program.send(SIGKILL);
    kills += program.wait().code == 128 + SIGKILL;
  }
  EXPECT_GE(kills, 1) << "no run was long enough to be killed";
  const Outcome outcome = run(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(run({"infer", "p.toml", "--max-num-epochs", "600", "--out", "unbroken"}).code, 0);
  EXPECT_EQ(content("p_run/estimator.safetensors"), content("unbroken/estimator.safetensors"));
  EXPECT_EQ(content("p_run/draws.csv"), content("unbroken/draws.csv"));
}

TEST_F(StopResume, TheDefaultTrainingGoesOnAndTheRecordSaysWhatItWas) {
  const std::string small =
      "[network]\nhidden_features = 16\nnum_blocks = 1\n[sampling]\nnum_samples = 200\n";
  write("p.toml", kParameters + kSimulations + kObservation + small);
  ASSERT_EQ(run({"infer", "p.toml", "--out", "unbroken"}).code, 0);
  RunningProgram program = start({"infer", "p.toml"});
  ASSERT_TRUE(wait_for("p_run/checkpoint.safetensors"));
  program.send(SIGKILL);
  program.wait();
  ASSERT_EQ(run({"infer", "p.toml", "--resume"}).code, 0);
  EXPECT_TRUE(content("p_run/estimator.safetensors") == content("unbroken/estimator.safetensors"));
  EXPECT_TRUE(content("p_run/draws.npz") == content("unbroken/draws.npz"));
  const Record record = record_from_json(content("p_run/record.json"), "record");
  const auto rows = std::get<std::int64_t>(*record.find("simulations.num_rows"));
  const TrainingOptions chosen = settled_options({}, static_cast<std::size_t>(rows));
  EXPECT_EQ(std::get<std::int64_t>(*record.find("options.training.training_batch_size")),
            chosen.training_batch_size);
  EXPECT_EQ(std::get<double>(*record.find("options.training.learning_rate")), chosen.learning_rate);
  EXPECT_EQ(std::get<std::int64_t>(*record.find("options.training.max_num_epochs")), chosen.max_num_epochs);
}

TEST_F(StopResume, ATimeLimitGivesAPartialResultAndCodeFive) {
  const Outcome outcome = run({"infer", "p.toml", "--max-num-epochs", "10000000", "--time-limit", "4"});
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  expect_in(outcome.last_line(), "nrec infer: budget spent: time limit reached after ");
  expect_in(outcome.last_line(),
            "to go on: nrec infer p.toml --max-num-epochs 10000000 --time-limit 4 --resume");
  EXPECT_TRUE(exists("p_run/estimator.safetensors"));
  EXPECT_TRUE(exists("p_run/draws.csv"));
}

TEST_F(StopResume, ASamplingBudgetGivesAPartialResultWithAForecast) {
  const Outcome outcome = run({"infer", "p.toml", "--max-num-epochs", "5", "--num-samples", "1000000",
                               "--max-evaluations", "100000"});
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  expect_in(outcome.last_line(), "the budget is spent (max_evaluations = 100000");
  expect_in(outcome.last_line(), "the missing draws would take about");
  const Record record = record_from_json(content("p_run/record.json"), "record");
  EXPECT_EQ(std::get<std::string>(*record.find("status")), "budget spent");
  EXPECT_GT(std::get<std::int64_t>(*record.find("sampling.num_draws")), 0);
}

TEST_F(StopResume, ResumeWithoutAnEarlierRunStartsAnew) {
  const Outcome outcome = run({"infer", "p.toml", "--max-num-epochs", "3", "--resume"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.err, "no checkpoint of an earlier run in p_run: starting anew");
}

TEST_F(StopResume, ACheckpointOfOtherSettingsIsRefused) {
  ASSERT_EQ(run({"infer", "p.toml", "--max-num-epochs", "3"}).code, 0);
  const Outcome outcome =
      run({"infer", "p.toml", "--max-num-epochs", "3", "--resume", "--learning-rate", "1e-2"});
  EXPECT_EQ(outcome.code, 3);
  expect_in(outcome.err, "this checkpoint belongs to other simulations, settings, seed or instruction set");
}

/// A sampling that takes some seconds, by a network that is there.
class StopSampling : public ToyTest {
 protected:
  void SetUp() override {
    ToyTest::SetUp();
    ASSERT_EQ(infer(whole_).code, 0);
  }
  Words words(const std::string& out, const Words& more = {}) const {
    Words all = {"sample",        "--model", "p_run",   "--observation", "x_o.csv", "--method", "slice",
                 "--num-samples", "20000",   "--check", "none",          "--out",   out};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// Sends `signal` when the log of evaluations has grown to some size.
  Outcome broken_by(int signal, const std::string& out) const {
    RunningProgram program = start(words(out));
    const std::filesystem::path log = folder_ / out / "evaluations.bin";
    std::error_code code;
    for (int i = 0; i < 3000; ++i) {
      if (std::filesystem::exists(log, code) && std::filesystem::file_size(log, code) > 4000000) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    program.send(signal);
    return program.wait();
  }
};

TEST_F(StopSampling, SigtermLeavesPartialDrawsAndGoesOnToTheSame) {
  ASSERT_EQ(run(words("unbroken")).code, 0);
  EXPECT_FALSE(exists("unbroken/evaluations.bin"));
  const Outcome outcome = broken_by(SIGTERM, "broken");
  ASSERT_EQ(outcome.code, 143) << outcome.err;
  expect_in(outcome.last_line(), "stopped on request");
  expect_in(outcome.last_line(), "to go on: nrec sample");
  ASSERT_TRUE(exists("broken/record.json"));
  const Record record = record_from_json(content("broken/record.json"), "record");
  const std::int64_t partial = std::get<std::int64_t>(*record.find("sampling.num_draws"));
  EXPECT_LT(partial, 20000);
  EXPECT_EQ(exists("broken/draws.npz"), partial > 0);
  const Outcome resumed = run(words("broken", {"--resume"}));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_in(resumed.err, "went on with sampling after ");
  EXPECT_EQ(content("broken/draws.npz"), content("unbroken/draws.npz"));
  EXPECT_FALSE(exists("broken/evaluations.bin"));
}

TEST_F(StopSampling, GoesOnAfterASuddenEnd) {
  ASSERT_EQ(run(words("unbroken")).code, 0);
  ASSERT_EQ(broken_by(SIGKILL, "broken").code, 128 + SIGKILL);
  const Outcome resumed = run(words("broken", {"--resume"}));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_in(resumed.err, "went on with sampling after ");
  EXPECT_EQ(content("broken/draws.npz"), content("unbroken/draws.npz"));
}

TEST_F(StopSampling, ABudgetThatIsSpentGoesOnWithALargerOne) {
  ASSERT_EQ(run(words("unbroken")).code, 0);
  const Outcome outcome = run(words("broken", {"--max-evaluations", "300000"}));
  ASSERT_EQ(outcome.code, 5) << outcome.err;
  const Outcome resumed = run(words("broken", {"--resume"}));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_in(resumed.err, "went on with sampling after ");
  EXPECT_EQ(content("broken/draws.npz"), content("unbroken/draws.npz"));
}

}  // namespace
}  // namespace nrec::cli
