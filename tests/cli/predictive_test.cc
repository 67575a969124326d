// Data at posterior draws by a simulator of the user's own: nrec check --problem, and infer with check = "full".
#include <algorithm>

#include "nrec/io/json.h"
#include "nrec/io/npz.h"
#include "toy_problem.h"

namespace nrec::cli {
namespace {

/// The law of the toy in a program of its own.
const std::string kScript =
    "import random, sys\n"
    "for line in sys.stdin:\n"
    "    row, seed, mass, rate = line.split()\n"
    "    r = random.Random(int(seed))\n"
    "    print(row, float(mass) + r.gauss(0, 0.3), float(rate) + r.gauss(0, 0.3), r.gauss(0, 1), "
    "flush=True)\n";
const std::string kProgram =
    "[simulations]\ncommand = \"python3 toy.py\"\nline = \"{row} {seed} {theta}\"\nnum_simulations = 400\n";

class PredictiveProgram : public ToyTest {
 protected:
  void SetUp() override {
    ToyTest::SetUp();
    write("toy.py", kScript);
    write("own.toml", kParameters + kProgram + kObservation + kSmall);
    ASSERT_EQ(run({"train", "own.toml", "--out", "model", "--max-num-epochs", "60", "--quiet"}).code, 0);
    Toy toy = toy_simulations(200);
    write_simulations(toy, "held_out.npz");
  }
  Outcome check(const Words& more) const {
    Words words = {"check", "--model", "model", "--simulations", "held_out.npz", "--num-prior-draws",
                   "256",   "--out",   "c"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  Record record(const std::string& folder) const {
    return record_from_json(content(folder + "/record.json"), "record");
  }
  static std::int64_t number(const Record& record, const std::string& name) {
    return std::get<std::int64_t>(*record.find(name));
  }
  static std::string text(const Record& record, const std::string& name) {
    return std::get<std::string>(*record.find(name));
  }
};

TEST_F(PredictiveProgram, CheckHoldsTheObservationAgainstWhatTheProgramMakes) {
  const Outcome outcome = check({"--observation", "x_o.csv", "--problem", "own.toml"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.err, "simulating 200 rows at the posterior with python3 toy.py");
  EXPECT_EQ(outcome.err.find("pre-flight"), std::string::npos) << "its campaign knows it";
  const Record found = record("c");
  EXPECT_EQ(text(found, "check.predictive.verdict"), "trusted");
  EXPECT_EQ(number(found, "check.predictive.simulated"), 200);
  EXPECT_EQ(number(found, "check.predictive.failed"), 0);
  EXPECT_EQ(text(found, "check.predictive.simulator"), "python3 toy.py");
  EXPECT_EQ(std::get<std::vector<std::string>>(*found.find("inputs.files")).back(), "own.toml");
  const NamedArrays rows = read_npz(folder_ / "c/predictive.npz");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(find_array(rows, "theta")->shape, (std::vector<std::size_t>{200, 2}));
  EXPECT_EQ(find_array(rows, "x")->shape, (std::vector<std::size_t>{200, 3}));
  for (std::size_t i = 0; i < 200; ++i)
    EXPECT_NEAR(find_array(rows, "x")->values[3 * i], find_array(rows, "theta")->values[2 * i], 1.8);
  // The same seed, the same rows; another seed, others.
  ASSERT_EQ(
      check({"--observation", "x_o.csv", "--problem", "own.toml", "--overwrite", "--threads", "3"}).code, 0);
  EXPECT_EQ(find_array(read_npz(folder_ / "c/predictive.npz"), "x")->values, find_array(rows, "x")->values);
  ASSERT_EQ(check({"--observation", "x_o.csv", "--problem", "own.toml", "--overwrite", "--seed", "2",
                   "--num-predicted", "60"})
                .code,
            0);
  EXPECT_EQ(find_array(read_npz(folder_ / "c/predictive.npz"), "theta")->shape[0], 60u);
  // Without a program nothing of it is left.
  ASSERT_EQ(check({"--observation", "x_o.csv", "--overwrite"}).code, 0);
  EXPECT_FALSE(exists("c/predictive.npz"));
}

TEST_F(PredictiveProgram, CheckSeesAnObservationThatThePosteriorDoesNotMake) {
  write("x_bad.csv", "2.0,3.0,30\n");
  const Outcome outcome = check({"--observation", "x_bad.csv", "--problem", "own.toml", "--strict"});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_EQ(text(record("c"), "check.predictive.verdict"), "not trusted");
}

TEST_F(PredictiveProgram, CheckTellsAProgramThatFailsAtThePosterior) {
  // It works where the pre-flight tries it, at draws of the prior, and hardly ever at the posterior.
  write("toy.py",
        "import random, sys\n"
        "for line in sys.stdin:\n"
        "    row, seed, mass, rate = line.split()\n"
        "    near = abs(float(mass) - 2) < 1.5 and abs(float(rate) - 3) < 1.5\n"
        "    print(row, 'nan' if near else 1.0, float(rate) + random.Random(int(seed)).gauss(0, 1), "
        "2, flush=True)\n");
  const Outcome outcome = check({"--observation", "x_o.csv", "--problem", "own.toml"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.err, "simulations at posterior draws failed, the first of them row ");
  expect_in(outcome.out, "simulations at the posterior of x_o succeeded, too few");
  EXPECT_EQ(text(record("c"), "check.predictive.verdict"), "cannot tell");
  EXPECT_GT(number(record("c"), "check.predictive.failed"), 150);
}

TEST_F(PredictiveProgram, CheckRefusesWhatDoesNotFit) {
  const Words observed = {"--observation", "x_o.csv", "--problem"};
  const auto error = [&](const std::string& problem, const Words& more = {}) {
    Words words = observed;
    words.push_back(problem);
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = check(words);
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_FALSE(exists("c")) << problem;
    return outcome.err;
  };
  expect_in(check({"--problem", "own.toml"}).err, "name one by --observation");
  expect_in(error("own.toml", {"--num-predicted", "49"}), "num_predicted = 49 is too few");
  expect_in(run({"infer", "own.toml", "--num-predicted", "1"}).err, "num_predicted = 1 is too few");
  expect_in(error("own.toml", {"--task", "two_moons"}), "prior of task two_moons");
  write("files.toml", kParameters + kSimulations);
  expect_in(error("files.toml"), "files.toml: [simulations] has no command and no library");
  write("other.toml",
        "[parameters]\nmass = { prior = \"uniform\", low = 0, high = 5 }\nrate = { prior = "
        "\"uniform\", low = 0, high = 6 }\n" +
            kProgram);
  expect_in(error("other.toml"),
            "other.toml: its prior (mass ~ uniform(low = 0, high = 5); rate ~ uniform(low = "
            "0, high = 6)) is not the one of the estimator");
  write("two.py", "import sys\nfor line in sys.stdin:\n    print(line.split()[0], 1, 2, flush=True)\n");
  write("two.toml",
        kParameters + "[simulations]\ncommand = \"python3 two.py\"\nline = \"{row} {seed} {theta}\"\n");
  expect_in(error("two.toml"), "python3 two.py: makes 2 numbers but the estimator was trained on 3 data");
  expect_in(error("not_there.toml"), "not_there.toml");
}

TEST_F(PredictiveProgram, InferDoesItInItsFullCheck) {
  const Outcome outcome =
      run({"infer", "own.toml", "--check", "full", "--num-predicted", "70", "--out", "r"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.err, "simulating 70 rows at the posterior with python3 toy.py");
  EXPECT_EQ(number(record("r"), "check.predictive.simulated"), 70);
  EXPECT_EQ(find_array(read_npz(folder_ / "r/predictive.npz"), "observation")->values,
            std::vector<double>(70, 0.0));
  // A batch: rows for each observation.
  write("batch.csv", "2.0,3.0,0.1\n1.0,4.0,-0.1\n");
  const Outcome batch = run({"infer", "own.toml", "--check", "full", "--num-predicted", "60", "--out", "b",
                             "--observation", "batch.csv", "--rows", "batch"});
  ASSERT_EQ(batch.code, 0) << batch.err;
  const NamedArrays rows = read_npz(folder_ / "b/predictive.npz");
  const std::vector<double>& observation = find_array(rows, "observation")->values;
  ASSERT_EQ(observation.size(), 120u);
  EXPECT_EQ(std::ranges::count(observation, 1.0), 60);
  // Another observation on top of that folder: what is kept is never that of the former one.
  ASSERT_EQ(run({"infer", "own.toml", "--out", "r", "--resume", "--num-samples", "210"}).code, 0);
  EXPECT_FALSE(exists("r/predictive.npz"));
  // The quick check runs no program again.
  const Outcome quick = run({"infer", "own.toml", "--out", "q"});
  ASSERT_EQ(quick.code, 0) << quick.err;
  EXPECT_EQ(quick.err.find("at the posterior"), std::string::npos);
  EXPECT_FALSE(exists("q/predictive.npz"));
}

TEST_F(PredictiveProgram, ATimeLimitInItIsAPartialResult) {
  ASSERT_EQ(run({"infer", "own.toml", "--out", "r"}).code, 0);  // the campaign and the network
  write("toy.py",
        "import os, random, sys, time\n"
        "for line in sys.stdin:\n"
        "    row, seed, mass, rate = line.split()\n"
        "    if int(row) > 8: time.sleep(1)\n"
        "    print(row, float(mass), float(rate), random.Random(int(seed)).gauss(0, 1), flush=True)\n");
  const Outcome outcome = check({"--observation", "x_o.csv", "--problem", "own.toml", "--time-limit", "6"});
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  expect_in(outcome.last_line(), "the time limit was over while checking");
  EXPECT_GT(number(record("c"), "check.predictive.simulated"), 0);
  EXPECT_LT(number(record("c"), "check.predictive.simulated"), 50);
  // The rows of a finished campaign are there; only what is simulated at the posterior takes its time.
  write("wait.toml", kParameters +
                         "[simulations]\ncommand = \"python3 toy.py\"\nline = \"{row} {seed} {theta}\"\n"
                         "num_simulations = 9\ncampaign = \"wait_campaign\"\n" +
                         kObservation + kSmall);
  const Outcome infer_cut = run({"infer", "wait.toml", "--K", "2", "--training-batch-size", "4", "--check",
                                 "full", "--time-limit", "8", "--out", "w"});
  EXPECT_EQ(infer_cut.code, 5) << infer_cut.err;
  EXPECT_EQ(text(record("w"), "status"), "budget spent");
  expect_in(infer_cut.last_line(), "the time limit was over while checking");
}

TEST_F(PredictiveProgram, WhatACampaignKnowsOfTheProgramIsEnoughForRowsThatHang) {
  // Hangs where the pre-flight of the campaign hardly tries it: each such row costs its own time limit, not a minute.
  write("toy.py",
        "import sys, time\n"
        "for line in sys.stdin:\n"
        "    row, seed, mass, rate = line.split()\n"
        "    if abs(float(mass) - 2) < 1 and abs(float(rate) - 3) < 1: time.sleep(1000)\n"
        "    print(row, float(mass) + int(seed) % 7, float(rate), 1, flush=True)\n");
  write("hang.toml", kParameters +
                         "[simulations]\ncommand = \"python3 toy.py\"\nline = \"{row} {seed} {theta}\"\n"
                         "num_simulations = 20\nrow_time_limit = 0.3\n" +
                         kObservation);
  ASSERT_EQ(run({"simulate", "hang.toml"}).code, 0);
  const Outcome outcome = check(
      {"--observation", "x_o.csv", "--problem", "hang.toml", "--time-limit", "10", "--num-predicted", "50"});
  EXPECT_EQ(outcome.err.find("pre-flight"), std::string::npos);
  // With a minute for each to start none would be done; how many are depends on what else runs.
  EXPECT_GE(number(record("c"), "check.predictive.failed"), 1) << outcome.err;
}

}  // namespace
}  // namespace nrec::cli
