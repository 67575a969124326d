// What a run leaves behind, where, and when it refuses to.
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <thread>

#include "nrec/io/hdf5.h"
#include "nrec/io/json.h"
#include "nrec/io/tables.h"
#include "toy_problem.h"

namespace nrec::cli {
namespace {

class RunFolder : public ToyTest {};

TEST_F(RunFolder, ARunWritesItsFilesAndSaysSo) {
  const Outcome outcome = infer(whole_);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"estimator.safetensors", "checkpoint.safetensors", "draws.npz", "draws.csv",
                           "draws.nc", "record.json", "config.toml"})
    EXPECT_TRUE(exists(std::string("p_run/") + name)) << name;
  expect_in(outcome.out, "mean");
  expect_in(outcome.out, "mass");
  expect_in(outcome.out, "verdict: ");
  expect_in(outcome.last_line(), "nrec infer: done: ");
  expect_in(outcome.last_line(), "; results in p_run");
  const std::vector<std::string> theta_name = {"theta"};
  const SampleTable npz = read_samples(folder_ / "p_run/draws.npz", theta_name);
  const SampleTable csv = read_samples(folder_ / "p_run/draws.csv");
  EXPECT_EQ(npz.values, csv.values);
  EXPECT_EQ(npz.values.rows(), 200u);
  const std::vector<std::string> variables = {"posterior/mass", "posterior/rate", "sample_stats/log_ratio",
                                              "sample_stats/lp", "observed_data/x"};
  const NamedArrays netcdf = read_hdf5(folder_ / "p_run/draws.nc", variables);
  for (std::size_t s = 0; s < 200; ++s) {
    EXPECT_EQ(netcdf[0].second.values[s], npz.values(s, 0));
    EXPECT_EQ(netcdf[1].second.values[s], npz.values(s, 1));
    EXPECT_NEAR(netcdf[3].second.values[s], netcdf[2].second.values[s] - std::log(25.0), 1e-12);
  }
  EXPECT_EQ(netcdf[4].second.shape, (std::vector<std::size_t>{3}));
  EXPECT_EQ(csv.names, (std::vector<std::string>{"mass", "rate"}));
}

TEST_F(RunFolder, JsonIsTheRecordAndNothingElse) {
  const Outcome outcome = infer(whole_, {"--json", "--seed", "5"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, content("p_run/record.json"));
  const Record record = record_from_json(outcome.out, "stdout");
  EXPECT_EQ(std::get<std::int64_t>(*record.find("schema_version")), 1);
  EXPECT_EQ(std::get<std::int64_t>(*record.find("seed")), 5);
  EXPECT_EQ(std::get<std::string>(*record.find("status")), "done");
  EXPECT_EQ(std::get<std::vector<std::string>>(*record.find("inputs.hashes")).size(), 2u);
  EXPECT_EQ(std::get<std::vector<double>>(*record.find("marginals.mean")).size(), 2u);
  EXPECT_EQ(std::get<std::string>(*record.find("command_line")), "nrec infer p.toml --json --seed 5");
  EXPECT_NE(record.find("check.verdict"), nullptr);
}

TEST_F(RunFolder, StrictTurnsTheVerdictNotTrustedIntoCodeFour) {
  write("x_o.csv", "2.0,3.0,50\n");
  const Outcome strict = infer(whole_, {"--strict"});
  EXPECT_EQ(strict.code, 4) << strict.err;
  expect_in(strict.out, "verdict: not trusted");
  expect_in(strict.last_line(), "verdict: not trusted; the checks failed (--strict); results in p_run");
  EXPECT_EQ(infer(whole_, {"--overwrite"}).code, 0);
}

TEST_F(RunFolder, ARecordOfANewerProgramIsNotReplaced) {
  write("p.toml", whole_);
  const auto train = [&] { return run({"train", "p.toml", "--out", "t", "--resume"}); };
  ASSERT_EQ(train().code, 0);
  const std::string newer = "{\"schema_version\": 99}";
  write("t/record.json", newer);
  const Outcome outcome = train();
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  expect_in(outcome.err,
            "t/record.json: schema_version = 99, but this program knows records up to version 1");
  EXPECT_EQ(content("t/record.json"), newer);
}

TEST_F(RunFolder, QuietMeansSilentSuccess) {
  const Outcome outcome = infer(whole_, {"--quiet"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  expect_in(outcome.out, "verdict: ");
}

TEST_F(RunFolder, AnEarlierRunIsOnlyReplacedOnRequestAndOtherFilesStay) {
  ASSERT_EQ(infer(whole_).code, 0);
  write("p_run/notes.txt", "mine");
  const std::string estimator = content("p_run/estimator.safetensors");
  const Outcome refused = infer(whole_, {"--seed", "2"});
  EXPECT_EQ(refused.code, 3);
  expect_in(refused.err,
            "p_run: holds estimator.safetensors of an earlier run; go on with it by --resume, replace it by "
            "--overwrite, or choose another --out");
  EXPECT_EQ(content("p_run/estimator.safetensors"), estimator);
  ASSERT_EQ(infer(whole_, {"--seed", "2", "--overwrite"}).code, 0);
  EXPECT_NE(content("p_run/estimator.safetensors"), estimator);
  EXPECT_EQ(content("p_run/notes.txt"), "mine");
  EXPECT_EQ(infer(whole_, {"--seed", "2", "--out", "elsewhere/deep"}).code, 0);
  EXPECT_EQ(content("elsewhere/deep/estimator.safetensors"), content("p_run/estimator.safetensors"));
}

TEST_F(RunFolder, ResumingAFinishedRunRepeatsNothingAndChangesNothing) {
  ASSERT_EQ(infer(whole_).code, 0);
  const std::string estimator = content("p_run/estimator.safetensors");
  const std::string draws = content("p_run/draws.npz");
  const Outcome outcome = infer(whole_, {"--resume"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.err, "resuming training after 6 epochs");
  expect_in(outcome.err, "taking over the draws of the earlier run");
  EXPECT_EQ(content("p_run/estimator.safetensors"), estimator);
  EXPECT_EQ(content("p_run/draws.npz"), draws);
  // Other draws are wanted: training stays, sampling is done again.
  const Outcome more = infer(whole_, {"--resume", "--num-samples", "300"});
  ASSERT_EQ(more.code, 0) << more.err;
  EXPECT_EQ(read_samples(folder_ / "p_run/draws.csv").values.rows(), 300u);
  EXPECT_EQ(content("p_run/estimator.safetensors"), estimator);
}

TEST_F(RunFolder, AFolderThatCannotBeWrittenIsRefusedBeforeAnyWork) {
  write("occupied", "a file");
  for (const char* out : {"occupied", "occupied/below"}) {
    const Outcome outcome = infer(whole_, {"--out", out});
    EXPECT_EQ(outcome.code, 3);
    expect_in(outcome.err, "choose another --out");
    EXPECT_EQ(outcome.err.find("training"), std::string::npos) << outcome.err;
  }
}

TEST_F(RunFolder, PathsWithSpacesAndLettersOfAllKindsWork) {
  write_simulations(toy_simulations(200), "Übungs daten/моя 模拟.npz");
  write("Übungs daten/x o.csv", "2.0,3.0,0.1\n");
  write("Übungs daten/großes Problem.toml",
        kParameters + "[simulations]\nfiles = [\"моя 模拟.npz\"]\n[observation]\nfile = \"x o.csv\"\n" +
            kSmall);
  const Outcome outcome = run({"infer", "Übungs daten/großes Problem.toml", "--out", "résultats finaux"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.last_line(), "results in résultats finaux");
  EXPECT_TRUE(exists("résultats finaux/draws.csv"));
  expect_in(content("résultats finaux/record.json"), "'Übungs daten/großes Problem.toml'");
}

TEST_F(RunFolder, TheSettingsOfARunAreAProblemFileThatGivesTheSameResult) {
  ASSERT_EQ(infer(whole_, {"--seed", "3", "--gamma", "2"}).code, 0);
  const Outcome again = run({"infer", "p_run/config.toml", "--out", "again"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(content("again/estimator.safetensors"), content("p_run/estimator.safetensors"));
  EXPECT_EQ(content("again/draws.npz"), content("p_run/draws.npz"));
}

TEST_F(RunFolder, HamiltonianDrawsCarryWhatTheirTrajectoriesDid) {
  const Outcome outcome = infer(whole_, {"--method", "nuts", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Record record = record_from_json(outcome.out, "stdout");
  EXPECT_EQ(std::get<std::string>(*record.find("sampling.method")), "nuts");
  EXPECT_NE(record.find("sampling.divergences"), nullptr);
  EXPECT_EQ(std::get<std::vector<double>>(*record.find("marginals.mcse_mean")).size(), 2u);
  for (const char* name : {"acceptance_rate", "tree_depth", "n_steps", "energy", "diverging"}) {
    const std::vector<std::string> wanted = {name};
    EXPECT_EQ(read_samples(folder_ / "p_run/draws.npz", wanted).values.rows(), 200u) << name;
  }
  const std::string draws = content("p_run/draws.npz");
  ASSERT_EQ(infer(whole_, {"--method", "nuts", "--threads", "3", "--overwrite"}).code, 0);
  EXPECT_EQ(content("p_run/draws.npz"), draws);
  EXPECT_EQ(run({"compare", "p_run/draws.npz", "p_run/draws.csv"}).code, 0);
}

TEST_F(RunFolder, ThreadsChangeNoBits) {
  std::string estimator, draws;
  for (const char* threads : {"1", "2", "3"}) {
    ASSERT_EQ(infer(whole_, {"--threads", threads, "--overwrite"}).code, 0);
    if (estimator.empty()) {
      estimator = content("p_run/estimator.safetensors");
      draws = content("p_run/draws.npz");
    }
    EXPECT_EQ(content("p_run/estimator.safetensors"), estimator) << threads;
    EXPECT_EQ(content("p_run/draws.npz"), draws) << threads;
  }
  ASSERT_EQ(infer(whole_, {"--seed", "2", "--overwrite"}).code, 0);
  EXPECT_NE(content("p_run/estimator.safetensors"), estimator) << "another seed must change them";
}

TEST_F(RunFolder, FileNamesOfFlagsStartFromTheCurrentFolder) {
  write_simulations(toy_simulations(200), "data/sims.npz");
  write("data/p.toml", whole_);  // x_o.csv lies here, not in data
  EXPECT_EQ(run({"infer", "data/p.toml"}).code, 3);
  EXPECT_EQ(run({"infer", "data/p.toml", "--observation", "x_o.csv"}).code, 0);
}

TEST_F(RunFolder, TasksNeedNoFileAtAll) {
  write("x_o.csv", "0.1,-0.2\n");
  const Outcome outcome =
      run({"infer", "--task", "two_moons", "--observation", "x_o.csv", "--num-simulations", "300",
           "--hidden-features", "8", "--num-blocks", "1", "--norm", "none", "--K", "5", "--max-num-epochs",
           "3", "--num-samples", "100"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(exists("two_moons_run/draws.csv"));
}

TEST_F(RunFolder, TrainAndSampleGiveWhatInferGives) {
  ASSERT_EQ(infer(whole_).code, 0);
  ASSERT_EQ(run({"train", "p.toml", "--out", "model"}).code, 0);
  EXPECT_EQ(content("model/estimator.safetensors"), content("p_run/estimator.safetensors"));
  EXPECT_FALSE(exists("model/draws.npz"));
  const Outcome outcome =
      run({"sample", "--model", "model", "--observation", "x_o.csv", "--num-samples", "200"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(content("x_o_draws/draws.npz"), content("p_run/draws.npz"));
  expect_in(outcome.last_line(), "results in x_o_draws");
  EXPECT_EQ(run({"sample", "--model", "model", "--observation", "x_o.csv"}).code, 3) << "the folder is taken";
  EXPECT_EQ(run({"sample", "--observation", "x_o.csv"}).code, 2);
  EXPECT_EQ(run({"sample", "--model", "model"}).code, 2);
  EXPECT_EQ(run({"sample", "--model", "x_o.csv", "--observation", "x_o.csv", "--out", "o"}).code, 3);
  EXPECT_EQ(run({"train", "p.toml", "--num-samples", "9", "--out", "o"}).code, 2)
      << "train has no flags of sampling";
}

TEST_F(RunFolder, ResultsNeverReplaceTheirInputs) {
  std::filesystem::create_directory(folder_ / "own");
  write("own/draws.csv", content("x_o.csv"));
  const Outcome outcome = infer(whole_, {"--observation", "own/draws.csv", "--out", "own", "--overwrite"});
  EXPECT_NE(outcome.code, 0);
  expect_in(outcome.err, "own/draws.csv: is an input, and the results would replace it");
  EXPECT_EQ(content("own/draws.csv"), content("x_o.csv"));
  EXPECT_EQ(run({"compare", "x_o.csv", "x_o.csv", "--out", "x_o.csv"}).code, 2);
}

TEST_F(RunFolder, AFolderHasOneWriter) {
  write("p.toml", whole_);
  RunningProgram first = start({"train", "p.toml", "--max-num-epochs", "10000000", "--out", "shared"});
  for (int i = 0; i < 500 && !exists("shared/checkpoint.safetensors"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const Outcome second = run({"train", "p.toml", "--out", "shared", "--overwrite"});
  EXPECT_NE(second.code, 0);
  expect_in(second.err, "another nrec is writing there");
  first.send(SIGKILL);
  first.wait();
  EXPECT_EQ(run({"train", "p.toml", "--out", "shared", "--overwrite"}).code, 0);
}

TEST_F(RunFolder, NamesThatContradictASamplesFileAreRefused) {
  write("prior.csv", "b,a\n0.1,0.2\n0.3,0.4\n0.5,0.1\n");
  const Outcome outcome = infer("[parameters]\nfrom_samples = \"prior.csv\"\nnames = [\"a\", \"b\"]\n" +
                                kSimulations + kObservation + kSmall);
  EXPECT_EQ(outcome.code, 3);
  expect_in(outcome.err, "names differ from the header of");
}

}  // namespace
}  // namespace nrec::cli
