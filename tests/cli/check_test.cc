// nrec check: verdicts, refusals, stops.
#include <signal.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "nrec/io/json.h"
#include "nrec/io/npz.h"
#include "toy_problem.h"

namespace nrec::cli {
namespace {

/// An estimator of the toy, and 300 rows of it that were not in the training.
class Check : public ToyTest {
 protected:
  void SetUp() override {
    ToyTest::SetUp();
    write("t.toml", kParameters + kSimulations + kSmall);
    ASSERT_EQ(run({"train", "t.toml", "--out", "model", "--quiet"}).code, 0);
    Toy toy = toy_simulations(700);
    // The first 400 are those of the training.
    held_out_ = {Matrix<double>(300, 2), Matrix<double>(300, 3)};
    for (std::size_t i = 0; i < 300; ++i) {
      std::ranges::copy(toy.theta.row(400 + i), held_out_.theta.row(i).begin());
      std::ranges::copy(toy.x.row(400 + i), held_out_.x.row(i).begin());
    }
    write_simulations(held_out_, "held_out.npz");
  }
  Outcome check(const Words& more) const {
    Words words = {"check", "--model", "model", "--num-prior-draws", "256", "--out", "c"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  Record record(const std::string& folder = "c") const {
    return record_from_json(content(folder + "/record.json"), "record");
  }
  static std::string text(const Record& record, const std::string& name) {
    return std::get<std::string>(*record.find(name));
  }

  Toy held_out_;
};

TEST_F(Check, WritesEveryCurveAndATable) {
  const Outcome outcome = check({"--simulations", "held_out.npz", "--observation", "x_o.csv"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.out, "mean rank   shift/sd      width");
  expect_in(outcome.out, "information: I0 ");
  expect_in(outcome.out, "verdict: ");
  expect_in(outcome.last_line(), "nrec check: done; verdict: ");
  const Record found = record();
  EXPECT_EQ(text(found, "command"), "check");
  EXPECT_EQ(text(found, "status"), "done");
  EXPECT_EQ(std::get<std::int64_t>(*found.find("check.held_out.rows")), 300);
  EXPECT_EQ(std::get<std::vector<double>>(*found.find("check.coverage.highest_density")).size(), 39u);
  EXPECT_EQ(std::get<std::vector<double>>(*found.find("check.ranks.ecdf")).size(), 2 * 39u);
  EXPECT_EQ(std::get<std::vector<std::string>>(*found.find("inputs.files")).size(), 3u);
  EXPECT_FALSE(std::get<bool>(*found.find("check.held_out.is_training")));
  EXPECT_EQ(text(found, "check.observation range.verdict"), "trusted");
}

TEST_F(Check, FailedRowsOfSimulationsThatTheEstimatorDoesNotKnowAreRefused) {
  held_out_.x(5, 1) = std::nan("");
  write_simulations(held_out_, "held_out.npz");
  const Outcome outcome = check({"--simulations", "held_out.npz"});
  EXPECT_EQ(outcome.code, 3);
  expect_in(outcome.err,
            "1 of 300 simulations failed (1 with nan or infinity in x), but the estimator was trained on "
            "simulations none of which failed");
  EXPECT_EQ(outcome.err.find("--failures drop"), std::string::npos) << "check has no such flag";
}

TEST_F(Check, StrictEndsWithCodeFourWhenNotTrusted) {
  // A truth of the first parameter that is not the one of its data.
  for (std::size_t i = 0; i < held_out_.theta.rows(); ++i)
    held_out_.theta(i, 0) = std::min(5.0, held_out_.theta(i, 0) + 1.5);
  write_simulations(held_out_, "wrong.npz");
  const Outcome outcome = check({"--simulations", "wrong.npz", "--strict"});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  expect_in(outcome.last_line(), "verdict: not trusted; the checks failed (--strict)");
  expect_in(text(record(), "check.sentence"), "mass lies too low by ");
  EXPECT_EQ(check({"--simulations", "wrong.npz", "--overwrite"}).code, 0);
}

TEST_F(Check, JsonIsTheRecordAndNothingElse) {
  const Outcome outcome = check({"--simulations", "held_out.npz", "--json", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(text(record_from_json(outcome.out, "stdout"), "command"), "check");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Check, NamesRowsOfTheTraining) {
  const Outcome outcome = check({"--simulations", "sims.npz"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.err, "so these are the same rows");
  EXPECT_TRUE(std::get<bool>(*record().find("check.held_out.is_training")));
  EXPECT_NE(text(record(), "check.verdict"), "trusted");
}

TEST_F(Check, RefusesSimulationsThatDoNotFit) {
  const auto refuses = [&](const Words& words, int code, const std::string& part) {
    const Outcome outcome = check(words);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    expect_in(outcome.err, part);
    EXPECT_FALSE(exists("c"));
  };
  Toy toy = held_out_;
  toy.theta(7, 1) = 6.0;
  write_simulations(toy, "outside.npz");
  refuses({"--simulations", "outside.npz"}, 3,
          "outside.npz: theta[7, 1] (rate) = 6 is outside the prior, 0 to 5");
  write_npz(folder_ / "columns.npz",
            {{"theta", to_array(held_out_.theta)}, {"x", to_array(held_out_.theta)}});
  refuses(
      {"--simulations", "columns.npz"}, 3,
      "columns.npz: theta has 2 columns and x 2, but the estimator was trained on 2 parameters and 3 data");
  refuses({"--task", "two_moons"}, 3, "check: the prior of task two_moons (");
  refuses({"--task", "two_mons"}, 3, "did you mean two_moons?");
  refuses({}, 2, "--simulations or --task is missing");
  refuses({"--simulations", "none.npz"}, 3, "none.npz");
  write("rows.csv", "2.0,3.0,0.1\n2.0,3.0,0.1\n");
  refuses({"--simulations", "held_out.npz", "--observation", "rows.csv"}, 3,
          "rows.csv: holds 2 rows of 3 numbers, but one observation is wanted");
  write("short.csv", "2.0,3.0\n");
  refuses({"--simulations", "held_out.npz", "--observation", "short.csv"}, 3, "x_o has 2 numbers");
  const Outcome no_model = run({"check", "--simulations", "held_out.npz"});
  EXPECT_EQ(no_model.code, 2);
  expect_in(no_model.err, "--model is missing");
}

TEST_F(Check, LooksAtEveryRowOfTheObservation) {
  write("rows.csv", "2.0,3.0,0.1\n2.0,3.0,0.2\n2.5,3.5,0.1\n-900.0,3.0,0.1\n");
  const Outcome batch =
      check({"--simulations", "held_out.npz", "--observation", "rows.csv", "--rows", "batch"});
  ASSERT_EQ(batch.code, 0) << batch.err;
  EXPECT_EQ(std::get<std::vector<double>>(*record().find("check.observation.p_value")).size(), 4u);
  EXPECT_EQ(text(record(), "check.observation.verdict"), "not trusted");
  expect_in(batch.out, "row 3 of x_o is ");
  EXPECT_EQ(record().find("check.iid.rows"), nullptr);
  write("rows.csv", "2.0,3.0,0.1\n2.0,3.0,0.2\n2.5,3.5,0.1\n2.2,3.1,0.1\n");
  const Outcome iid =
      check({"--simulations", "held_out.npz", "--observation", "rows.csv", "--rows", "iid", "--overwrite"});
  ASSERT_EQ(iid.code, 0) << iid.err;
  EXPECT_EQ(std::get<std::int64_t>(*record().find("check.iid.rows")), 4);
  EXPECT_EQ(std::get<std::int64_t>(*record().find("check.iid.most_rows")), 18);  // 300 / 16
  expect_in(iid.out, "independent rows");
}

TEST_F(Check, DoesNotReplaceAnEarlierCheckUnasked) {
  ASSERT_EQ(check({"--simulations", "held_out.npz", "--max-rows", "60"}).code, 0);
  const Outcome outcome = check({"--simulations", "held_out.npz"});
  EXPECT_EQ(outcome.code, 3);
  expect_in(outcome.err, "holds record.json of an earlier run; replace it by --overwrite");
  EXPECT_EQ(check({"--simulations", "held_out.npz", "--max-rows", "0", "--overwrite"}).code, 0);
}

TEST_F(Check, ATaskSimulatesWithASeedOfItsOwn) {
  ASSERT_EQ(run({"train", "--task", "gaussian_linear", "-n", "300", "--hidden-features", "8", "--num-blocks",
                 "1", "--norm", "none", "--K", "9", "--training-batch-size", "64", "--max-num-epochs", "2",
                 "--out", "g"})
                .code,
            0);
  write("g.csv", "0,0,0,0,0,0,0,0,0,0\n");
  const Outcome outcome = run({"check", "--model", "g", "--task", "gaussian_linear", "-n", "300",
                               "--observation", "g.csv", "--num-prior-draws", "64", "--out", "c"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Record found = record();
  EXPECT_FALSE(std::get<bool>(*found.find("check.held_out.is_training")));
  EXPECT_EQ(std::get<std::vector<double>>(*found.find("check.thetas.auc")).size(), 3u);
  EXPECT_EQ(std::get<std::vector<double>>(*found.find("check.predictive.tail")).size(), 10u);
}

TEST_F(Check, IsPartOfInferAtLevelFull) {
  write_simulations(toy_simulations(1200));
  const Outcome outcome = infer(whole_ + "[check]\nlevel = \"full\"\n");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Record found = record("p_run");
  EXPECT_EQ(std::get<std::int64_t>(*found.find("check.held_out.rows")), 120);
  for (const char* item : {"ranks", "coverage", "tarp", "classifier", "ratio", "power", "observation",
                           "draws", "observation range"})
    EXPECT_NE(found.find("check." + std::string(item) + ".verdict"), nullptr) << item;
  EXPECT_EQ(found.find("check.normalisation.verdict"), nullptr);
  const Outcome sampled = run({"sample", "--model", "model", "--observation", "x_o.csv", "--check", "full"});
  EXPECT_EQ(sampled.code, 3);
  expect_in(sampled.err, "sample: check = \"full\" needs held-out simulations");
}

TEST_F(Check, StopsOnASignalAndAtTheTimeLimit) {
  const Words slow = {"check",        "--model",           "model", "--simulations",
                      "held_out.npz", "--num-prior-draws", "100000"};
  Words words = slow;
  words.insert(words.end(), {"--time-limit", "0.3", "--out", "late"});
  const Outcome late = run(words);
  EXPECT_EQ(late.code, 5) << late.err;
  expect_in(late.last_line(), "nrec check: budget spent: the time limit was over while checking; ");
  EXPECT_EQ(text(record("late"), "status"), "budget spent");
  EXPECT_NE(text(record("late"), "check.verdict"), "trusted");

  words = slow;
  words.insert(words.end(), {"--out", "stopped"});
  RunningProgram program = start(words);
  for (int i = 0; i < 3000 && !exists("stopped"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  program.send(SIGTERM);
  const Outcome stopped = program.wait();
  EXPECT_EQ(stopped.code, 143) << stopped.err;
  expect_in(stopped.last_line(), "nrec check: stopped: stopped on request while checking");
  EXPECT_EQ(record("stopped").find("check.verdict"), nullptr);
}

}  // namespace
}  // namespace nrec::cli
