// Several rows of an observation: a batch of posteriors, or one data set of independent rows.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "nrec/io/json.h"
#include "nrec/io/npz.h"
#include "nrec/io/tables.h"
#include "toy_problem.h"

namespace nrec::cli {
namespace {

class Rows : public ToyTest {
 protected:
  void SetUp() override {
    ToyTest::SetUp();
    ASSERT_EQ(infer(whole_, {"--max-num-epochs", "40", "--num-samples", "10"}).code, 0);
    write("rows.csv", "2,3,0\n1,4,0.1\n2.5,2.5,-0.1\n4,1,0\n");
  }
  Outcome sample(const std::string& observation, const std::string& out, const Words& more,
                 const char* num_samples = "100") const {
    Words words = {"sample", "--model",       "p_run",     "--observation", observation, "--out",
                   out,      "--num-samples", num_samples, "--check",       "none"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  Record record(const std::string& folder) const {
    return record_from_json(content(folder + "/record.json"), "record");
  }
  static std::vector<double> numbers(const Record& record, const char* name) {
    return std::get<std::vector<double>>(*record.find(name));
  }
};

TEST_F(Rows, ABatchHasAPosteriorForEveryRow) {
  const Outcome outcome = sample("rows.csv", "batch", {"--rows", "batch"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.out, "observation 0: complete");
  expect_in(outcome.out, "... and 1 more: observations.* in record.json, draws in draws.npz");
  const Record batch = record("batch");
  EXPECT_EQ(std::get<std::int64_t>(*batch.find("observations.count")), 4);
  EXPECT_EQ(std::get<std::int64_t>(*batch.find("observations.complete")), 4);
  const std::vector<double> mean = numbers(batch, "observations.mean");
  ASSERT_EQ(mean.size(), 8u);
  const double truth[] = {2, 3, 1, 4, 2.5, 2.5, 4, 1};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(mean[i], truth[i], 0.6) << i;
  EXPECT_EQ(numbers(batch, "observations.map.theta").size(), 8u);
  EXPECT_EQ(numbers(batch, "observations.log_z").size(), 4u);
  const NamedArrays arrays = read_npz(folder_ / "batch/draws.npz");
  EXPECT_EQ(find_array(arrays, "theta")->shape, (std::vector<std::size_t>{100, 4, 2}));
  EXPECT_EQ(find_array(arrays, "log_density")->shape, (std::vector<std::size_t>{100, 4}));
  EXPECT_EQ(find_array(arrays, "num_draws")->values, std::vector<double>(4, 100.0));
  const SampleTable table = read_samples(folder_ / "batch/draws.csv");
  EXPECT_EQ(table.names, (std::vector<std::string>{"observation", "mass", "rate"}));
  ASSERT_EQ(table.values.rows(), 400u);
  EXPECT_EQ(table.values(399, 0), 3.0);
  // The draws of the first observation are those of a single run, in every file.
  ASSERT_EQ(sample("rows.csv", "single", {"--row", "0"}).code, 0);
  const NamedArrays single = read_npz(folder_ / "single/draws.npz");
  for (std::size_t s = 0; s < 100; ++s) {
    for (std::size_t d = 0; d < 2; ++d) {
      const double expected = find_array(single, "theta")->values[s * 2 + d];
      EXPECT_EQ(find_array(arrays, "theta")->values[(s * 4) * 2 + d], expected);
      EXPECT_EQ(table.values(s, 1 + d), expected);
    }
  }
}

TEST_F(Rows, ThreadsDoNotChangeABatch) {
  ASSERT_EQ(sample("rows.csv", "one", {"--rows", "batch", "--threads", "1"}).code, 0);
  ASSERT_EQ(sample("rows.csv", "three", {"--rows", "batch", "--threads", "3"}).code, 0);
  EXPECT_EQ(content("one/draws.npz"), content("three/draws.npz"));
  EXPECT_EQ(content("one/draws.csv"), content("three/draws.csv"));
}

TEST_F(Rows, LogRatiosOfIndependentRowsAdd) {
  write("same.csv", "2,3,0\n2,3,0\n");
  ASSERT_EQ(sample("same.csv", "iid", {"--rows", "iid"}, "2000").code, 0);
  ASSERT_EQ(sample("same.csv", "one", {"--row", "0"}, "4000").code, 0);
  // Two equal rows: the draws of one row, weighted by the ratio of the other.
  const NamedArrays draws = read_npz(folder_ / "one/draws.npz");
  std::vector<double> weight = find_array(draws, "log_ratio")->values;
  const double top = *std::max_element(weight.begin(), weight.end());
  double total = 0.0, square = 0.0;
  for (double& w : weight) {
    w = std::exp(w - top);
    total += w;
    square += w * w;
  }
  const double effective = total * total / square;
  ASSERT_GT(effective, 1000.0);
  const Record iid = record("iid");
  for (std::size_t d = 0; d < 2; ++d) {
    double mean = 0.0;
    for (std::size_t s = 0; s < weight.size(); ++s)
      mean += weight[s] / total * find_array(draws, "theta")->values[2 * s + d];
    const double sd = numbers(iid, "marginals.sd")[d];
    EXPECT_NEAR(numbers(iid, "marginals.mean")[d], mean, 4.0 * sd * std::sqrt(1.0 / effective + 1.0 / 2000));
    EXPECT_LT(sd, 0.9 * numbers(record("one"), "marginals.sd")[d]);
  }
}

TEST_F(Rows, InferChecksIndependentRowsAndBatches) {
  const Outcome iid =
      infer(kParameters + kSimulations + "[observation]\nfile = \"rows.csv\"\nrows = \"iid\"\n" + kSmall,
            {"--overwrite"});
  ASSERT_EQ(iid.code, 0) << iid.err;
  expect_in(iid.out, "independent rows: ");
  EXPECT_EQ(std::get<std::int64_t>(*record("p_run").find("check.iid.rows")), 4);
  const Outcome batch =
      infer(kParameters + kSimulations + "[observation]\nfile = \"rows.csv\"\nrows = \"batch\"\n" + kSmall,
            {"--overwrite"});
  ASSERT_EQ(batch.code, 0) << batch.err;
  expect_in(batch.out, "4 of 4 observations have all their draws");
  const Outcome again = run({"infer", "p.toml", "--resume"});
  ASSERT_EQ(again.code, 0) << again.err;
  expect_in(again.err, "taking over the draws of 4 observations of the earlier run");
}

TEST_F(Rows, AStoppedBatchGoesOnToTheSameDraws) {
  std::string many;
  for (int i = 0; i < 40; ++i)
    many += std::to_string(1.0 + 0.05 * i) + "," + std::to_string(4.0 - 0.05 * i) + ",0\n";
  write("many.csv", many);
  const Words words = {"sample", "--model", "p_run",    "--observation", "many.csv",
                       "--rows", "batch",   "--method", "slice",         "--num-samples",
                       "100",    "--check", "none",     "--out"};
  const auto with = [&](const Words& more) {
    Words all = words;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  RunningProgram program = start(with({"broken"}));
  for (int i = 0; i < 3000 && !exists("broken/record.json"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  program.send(SIGTERM);
  const Outcome outcome = program.wait();
  ASSERT_EQ(outcome.code, 143) << outcome.err;
  expect_in(outcome.last_line(), "observations have all their draws; ");
  expect_in(outcome.last_line(), "--resume");
  const std::int64_t complete = std::get<std::int64_t>(*record("broken").find("observations.complete"));
  EXPECT_LT(complete, 40);
  const Outcome resumed = run(with({"broken", "--resume"}));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_in(resumed.err, "taking over the draws of " + std::to_string(complete) + " observations");
  ASSERT_EQ(run(with({"unbroken"})).code, 0);
  EXPECT_EQ(content("broken/draws.npz"), content("unbroken/draws.npz"));
  EXPECT_EQ(content("broken/draws.csv"), content("unbroken/draws.csv"));
  EXPECT_EQ(numbers(record("broken"), "observations.map.theta"),
            numbers(record("unbroken"), "observations.map.theta"));
}

TEST_F(Rows, ResumeWithOtherSettingsSaysThatTheDrawsAreReplaced) {
  ASSERT_EQ(sample("rows.csv", "again", {"--row", "0"}).code, 0);
  const Outcome same = sample("rows.csv", "again", {"--row", "0", "--resume"});
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(same.err.find("they are replaced"), std::string::npos);
  const Outcome other = sample("rows.csv", "again", {"--row", "1", "--resume"});
  ASSERT_EQ(other.code, 0) << other.err;
  expect_in(other.err,
            "again: the draws there were made with other settings, another observation or another estimator; "
            "they are replaced");
}

TEST_F(Rows, AMethodThatThePriorCannotServeIsRefusedBeforeTraining) {
  write("thetas.csv", "mass,rate\n1,1\n2,2\n3,3\n4,4\n");
  const Outcome outcome =
      infer("[parameters]\nfrom_samples = \"thetas.csv\"\n" + kSimulations + kObservation + kSmall,
            {"--method", "nuts", "--out", "by_samples"});
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  expect_in(outcome.err,
            "method = \"nuts\" needs the density of the prior, but the prior is given by samples; use "
            "method = \"rejection\" or \"importance\"");
  EXPECT_FALSE(exists("by_samples"));
}

TEST_F(Rows, AnObservationWithoutSupportDoesNotStopTheOthers) {
  const Outcome outcome =
      sample("rows.csv", "budget", {"--rows", "batch", "--method", "rejection", "--max-evaluations", "300"});
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  expect_in(outcome.last_line(), "0 of 4 observations have all their draws; ");
}

TEST_F(Rows, BadRowsAreRefused) {
  const auto refused = [&](const Words& more, const std::string& file, const std::string& text) {
    const Outcome outcome = sample(file, "refused", more);
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    expect_in(outcome.err, text);
    EXPECT_FALSE(exists("refused"));
  };
  refused({"--rows", "batch", "--row", "1"}, "rows.csv",
          "row = 1 chooses one row, but rows = \"batch\" takes all of them");
  refused({}, "rows.csv", "holds 4 rows of 3 numbers, but one observation is wanted");
  write("narrow.csv", "1,2\n3,4\n");
  refused({"--rows", "iid"}, "narrow.csv",
          "x_o has 2 numbers a row; the simulations have 3 columns of x; give every row in the same order "
          "and units");
  write("nan.csv", "1,2,3\n3,nan,4\n");
  refused({"--rows", "iid"}, "nan.csv", "x_o[1, 1] = nan; every number of an observation must be finite");
  const std::string npy = std::string("\x93NUMPY\x01\x00\x46\x00", 10) +
                          "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }            \n" +
                          std::string(24, '\0');
  write("list.npy", npy);
  refused({"--rows", "batch"}, "list.npy",
          "holds a list of 3 numbers, which rows = \"batch\" takes as 3 rows of one number");
  const Outcome word = sample("rows.csv", "refused", {"--rows", "many"});
  EXPECT_EQ(word.code, 2) << word.err;
}

}  // namespace
}  // namespace nrec::cli
