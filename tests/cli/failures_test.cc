// Simulations that failed: the three rules through the program.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "nrec/io/json.h"
#include "nrec/io/npz.h"
#include "toy_problem.h"

namespace nrec::cli {
namespace {

/// The toy of 400 rows, which fails where its first datum is large: x > 4.
Toy failing_toy() {
  Toy toy = toy_simulations(400);
  for (std::size_t i = 0; i < 400; ++i) {
    if (toy.x(i, 0) > 4.0) toy.x(i, i % 3) = std::numeric_limits<double>::quiet_NaN();
  }
  return toy;
}

std::int64_t failures_in(const Toy& toy) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < toy.x.rows(); ++i) {
    const auto row = toy.x.row(i);
    count += std::any_of(row.begin(), row.end(), [](double value) { return std::isnan(value); });
  }
  return count;
}

class FailureRules : public ToyTest {
 protected:
  Record record_of(const std::string& folder = "p_run") const {
    return record_from_json(content(folder + "/record.json"), "record");
  }
  template <class T>
  static T value(const Record& record, const char* name) {
    const RecordValue* found = record.find(name);
    if (!found) ADD_FAILURE() << "no " << name;
    return found ? std::get<T>(*found) : T{};
  }
};

TEST_F(FailureRules, StopIsTheDefaultAndExplains) {
  const Toy toy = failing_toy();
  const Outcome outcome = infer_on(toy);
  EXPECT_EQ(outcome.code, 3);
  const std::string count = std::to_string(failures_in(toy));
  expect_in(outcome.err, "simulations (sims.npz): " + count + " of 400 simulations failed (" + count +
                             " with nan or infinity in x)");
  expect_in(outcome.err, "parameters that often fail look more probable than they are");
  expect_in(outcome.err, "--failures model learns the chance of success");
  EXPECT_FALSE(exists("p_run"));
}

TEST_F(FailureRules, ModelLearnsTheChanceOfSuccessAndRecordsIt) {
  const Toy toy = failing_toy();
  const std::int64_t failed = failures_in(toy);
  ASSERT_GT(failed, 40);
  const Outcome outcome = infer_on(toy, {"--failures", "model"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.err, "P(ok | theta) is learnt: on 80 held-out rows");
  expect_in(outcome.out, "failures: trusted: " + std::to_string(failed) + " of 400 simulations failed");
  const Record record = record_of();
  EXPECT_EQ(value<std::string>(record, "options.simulations.failures"), "model");
  EXPECT_EQ(value<std::int64_t>(record, "simulations.num_failed"), failed);
  EXPECT_EQ(value<std::int64_t>(record, "simulations.num_dropped"), 0);
  EXPECT_EQ(value<std::int64_t>(record, "simulations.num_rows"), 400 - failed);
  EXPECT_EQ(value<std::int64_t>(record, "simulations.status.ok"), 400 - failed);
  EXPECT_EQ(value<std::int64_t>(record, "simulations.status.non_finite"), failed);
  EXPECT_EQ(value<std::string>(record, "training.success.kind"), "network");
  EXPECT_EQ(value<std::int64_t>(record, "training.success.num_held_out"), 80);
  EXPECT_LT(value<double>(record, "training.success.brier_score"),
            value<double>(record, "training.success.constant_brier_score"));
  expect_in(run({"info", "p_run/estimator.safetensors"}).out, "success_model");
  expect_in(content("p_run/config.toml"), "failures = \"model\"");
  // The estimator carries it: sampling again by itself gives the same draws.
  const Outcome again =
      run({"sample", "--model", "p_run", "--observation", "x_o.csv", "--num-samples", "200"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(content("x_o_draws/draws.csv"), content("p_run/draws.csv"));
}

TEST_F(FailureRules, DropSaysHowManyAndIsNotTrusted) {
  const Toy toy = failing_toy();
  const std::string count = std::to_string(failures_in(toy));
  const Outcome outcome = infer_on(toy, {"--failures", "drop"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.err,
            "warning: " + count + " of 400 simulations failed (" + count +
                " with nan or infinity in x) and were left out: parameters that often fail look more "
                "probable than they are; --failures model corrects for it");
  expect_in(outcome.out, count + " failed simulations were dropped");
  const Record record = record_of();
  EXPECT_EQ(value<std::int64_t>(record, "simulations.num_dropped"), failures_in(toy));
  EXPECT_NE(value<std::string>(record, "check.verdict"), "trusted");
}

TEST_F(FailureRules, WithoutFailuresTheRulesGiveTheSameFiles) {
  std::string estimator, draws;
  for (const std::string rule : {"stop", "model", "drop"}) {
    const Outcome outcome = infer(whole_, {"--failures", rule, "--out", rule});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    if (estimator.empty()) estimator = content(rule + "/estimator.safetensors");
    if (draws.empty()) draws = content(rule + "/draws.npz");
    EXPECT_TRUE(content(rule + "/estimator.safetensors") == estimator) << rule;
    EXPECT_TRUE(content(rule + "/draws.npz") == draws) << rule;
    EXPECT_FALSE(record_of(rule).find("training.success.kind")) << rule;
  }
}

TEST_F(FailureRules, ASuddenEndWhileLearningThemIsNoLoss) {
  write_simulations(failing_toy());
  write("p.toml", whole_);
  const Words words = {"infer", "p.toml", "--failures", "model", "--max-num-epochs", "200", "--resume"};
  int kills = 0;
  for (int attempt = 0; attempt < 6; ++attempt) {
    RunningProgram program = start(words);
    std::this_thread::sleep_for(std::chrono::milliseconds(30 * (attempt + 1)));
    program.send(SIGKILL);
    kills += program.wait().code == 128 + SIGKILL;
  }
  EXPECT_GE(kills, 1) << "no run was long enough to be killed";
  ASSERT_EQ(run(words).code, 0);
  ASSERT_EQ(
      run({"infer", "p.toml", "--failures", "model", "--max-num-epochs", "200", "--out", "unbroken"}).code,
      0);
  EXPECT_TRUE(content("p_run/estimator.safetensors") == content("unbroken/estimator.safetensors"));
  EXPECT_TRUE(content("p_run/draws.csv") == content("unbroken/draws.csv"));
}

TEST_F(FailureRules, OtherWordsAreRefused) {
  const Outcome outcome = infer(whole_, {"--failures", "ignore"});
  EXPECT_EQ(outcome.code, 2);
  expect_in(outcome.err, "stop | model | drop");
}

TEST_F(FailureRules, ExportedRowsKeepHowTheyEnded) {
  write(
      "sim.sh",
      "awk -v m=\"$1\" -v r=\"$2\" 'BEGIN { if (m > 4) exit 3; if (r > 4.5) exit 77; print m, r, m * r }'\n");
  write("p.toml", kParameters +
                      "[simulations]\ncommand = \"sh sim.sh {mass} {rate}\"\nnum_simulations = 150\n"
                      "max_failure_fraction = 1.0\n");
  ASSERT_EQ(run({"simulate", "p.toml"}).code, 0);
  ASSERT_EQ(run({"export", "p_campaign", "--out", "sims.npz", "--overwrite"}).code, 0);
  write("q.toml", kParameters + kSimulations + kSmall);
  expect_in(run({"train", "q.toml"}).err, "ended with an error");
  ASSERT_EQ(run({"train", "q.toml", "--failures", "drop", "--out", "exported"}).code, 0);
  write("c.toml", kParameters + "[simulations]\ncampaign = \"p_campaign\"\n" + kSmall);
  ASSERT_EQ(run({"train", "c.toml", "--failures", "drop", "--out", "campaign"}).code, 0);
  const Record exported = record_of("exported"), campaign = record_of("campaign");
  for (const char* status : {"ok", "failed", "refused", "non_finite"}) {
    const std::string name = std::string("simulations.status.") + status;
    EXPECT_EQ(*exported.find(name), *campaign.find(name)) << status;
  }
  EXPECT_GT(value<std::int64_t>(exported, "simulations.status.failed"), 0);
  EXPECT_GT(value<std::int64_t>(exported, "simulations.status.refused"), 0);
}

TEST_F(FailureRules, ARowThatFailedIsNotTrainedUponWhateverItsNumbers) {
  const Toy toy = toy_simulations(400);
  NumericArray status = {{400}, std::vector<double>(400, 0.0)};
  status.values[7] = 3.0;
  const auto write_with = [&](const NumericArray& of_rows) {
    write_npz(folder_ / "sims.npz",
              {{"theta", to_array(toy.theta)}, {"x", to_array(toy.x)}, {"status", of_rows}});
  };
  write_with(status);
  expect_in(infer(whole_).err, "1 of 400 simulations failed (1 timed out); the first is row 7 (from 0)");
  ASSERT_EQ(infer(whole_, {"--failures", "drop"}).code, 0);
  EXPECT_EQ(value<std::int64_t>(record_of(), "simulations.num_rows"), 399);
  EXPECT_EQ(value<std::int64_t>(record_of(), "simulations.status.timed_out"), 1);
  // Of the first rows only; and of several files, one of which says nothing.
  const Outcome first_rows = infer(whole_, {"-n", "7", "--K", "3", "--overwrite"});
  EXPECT_EQ(first_rows.code, 0) << first_rows.err;
  EXPECT_EQ(first_rows.err.find("failed"), std::string::npos);
  write_simulations(toy, "more.npz");
  const std::string two = "[simulations]\nfiles = [\"more.npz\", \"sims.npz\"]\n";
  expect_in(infer(kParameters + two + kObservation + kSmall, {"--overwrite"}).err,
            "1 of 800 simulations failed (1 timed out); the first is row 407");
  status.values[8] = 6.0;
  write_with(status);
  const Outcome unknown = infer(whole_, {"--overwrite"});
  EXPECT_EQ(unknown.code, 3);
  expect_in(unknown.err, "sims.npz: status[8] = 6 must be 0 (ok) or 1 to 5");
}

}  // namespace
}  // namespace nrec::cli
