// nrec experiment: tables, figures and claims, going on after any end, refusals.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <sstream>
#include <thread>

#include "nrec/io/file.h"
#include "nrec/io/json.h"
#include "program.h"

namespace nrec::cli {
namespace {

namespace fs = std::filesystem;

/// Networks of a fraction of a second.
Words tiny(const std::string& name, const std::string& out, const Words& more = {}) {
  Words words = {"experiment", name,     "--quick", "--max-num-epochs", "3",   "--num-samples",
                 "200",        "--norm", "layer",   "--batch-size",     "512", "--observations",
                 "1",          "--out",  out};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class Experiment : public ProgramTest {
 protected:
  std::size_t files(const std::string& folder) const {
    std::error_code code;
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / folder, code))
      count += !entry.path().filename().string().starts_with(".");
    return count;
  }
  void refuse(const Words& line, int code, const std::string& message) const {
    const Outcome outcome = run(line);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    expect_in(outcome.err, message);
    EXPECT_FALSE(exists("e")) << "something was written: " << message;
  }
};

TEST_F(Experiment, ListsWhatThereIs) {
  const Outcome outcome = run({"experiment", "list"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* name : {"fig1 ", "fig3 ", "fig14 ", "table4 ", "convergence ", "verdicts "})
    expect_in(outcome.out, name);
}

TEST_F(Experiment, WritesTablesFigureClaimsAndRecord) {
  const Outcome outcome = run(tiny("fig13", "e", {"--counts", "2,5", "--gammas", "0.1,1"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.out, "not tested");
  EXPECT_EQ(outcome.last_line(), "nrec experiment: done: fig13 is done; results in e");
  const std::string csv = content("e/fig13.csv");
  expect_in(csv,
            "task,gamma,count,seed,min_negative_i0,epoch,c2st_mean,published_min_negative_i0\nslcp,0.1,2,1,");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  EXPECT_TRUE(exists("e/fig13.gp"));
  expect_in(content("e/fig13_claims.csv"), "claim,state,found,published\n");
  const Record record = record_from_json(content("e/fig13.json"), "fig13.json");
  EXPECT_EQ(std::get<std::string>(*record.find("status")), "done");
  EXPECT_EQ(std::get<std::int64_t>(*record.find("networks_done")), 4);
  EXPECT_EQ(files("e/networks"), 8u) << "a network and the facts of its training each";
  EXPECT_EQ(files("e/measured"), 4u);
  EXPECT_FALSE(exists("e/running"));
}

TEST_F(Experiment, ExperimentsShareTheirNetworks) {
  ASSERT_EQ(run(tiny("fig14", "e", {"--counts", "2", "--gammas", "1"})).code, 0);
  EXPECT_EQ(files("e/networks"), 4u) << "NRE-C and NRE-B";
  EXPECT_EQ(files("e/measured"), 0u);
  ASSERT_EQ(run(tiny("fig1", "e", {"--counts", "2", "--gammas", "1"})).code, 0);
  EXPECT_EQ(files("e/networks"), 4u) << "they were there already";
  EXPECT_EQ(files("e/measured"), 2u);
  const Outcome again = run(tiny("fig1", "e", {"--counts", "2", "--gammas", "1"}));
  expect_in(again.err, "2 of 2 networks are done already");
}

TEST_F(Experiment, GoesOnAfterAKillToTheSameTable) {
  Words words = tiny("fig5", "whole", {"--counts", "2,5", "--gammas", "0.1,1"});
  ASSERT_EQ(run(words).code, 0);
  *std::find(words.begin(), words.end(), "whole") = "broken";
  RunningProgram program = start(words);
  for (int i = 0; i < 2000 && files("broken/networks") < 4; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  program.send(SIGKILL);
  EXPECT_EQ(program.wait().code, 128 + SIGKILL);
  EXPECT_LT(files("broken/networks"), 12u) << "it had ended before the kill";
  ASSERT_EQ(run(words).code, 0);
  EXPECT_EQ(content("whole/fig5.csv"), content("broken/fig5.csv"));
  EXPECT_EQ(content("whole/fig5_claims.csv"), content("broken/fig5_claims.csv"));
}

TEST_F(Experiment, TheTimeLimitKeepsWhatIsDone) {
  const Outcome outcome = run(tiny("fig5", "e", {"--time-limit", "0.01"}));
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  expect_in(outcome.last_line(), "the same command goes on");
}

TEST_F(Experiment, AStopWritesTheTableOfWhatIsDone) {
  const auto stopped = [&](const Words& words, const std::function<bool()>& is_time) {
    RunningProgram program = start(words);
    for (int i = 0; i < 4000 && !is_time(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    program.send(SIGTERM);
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 128 + SIGTERM) << outcome.err;
    expect_in(outcome.last_line(), "the same command goes on");
    EXPECT_EQ(outcome.out.find("reproduced"), std::string::npos) << "claims on a part: " << outcome.out;
  };
  // The first network of the diagnostic is done when the second is trained.
  stopped({"experiment", "fig3", "--quick", "--seeds", "1-9", "--max-num-epochs", "2", "--out", "e"},
          [&] { return exists("e/importance_quick/nre-b_seed1.json"); });
  expect_in(content("e/fig3.csv"), "\nnre-c,1,done,");
  EXPECT_TRUE(exists("e/fig3_roc.csv"));
  const Words verdicts = tiny("verdicts", "v", {"--tasks", "two_moons,slcp,sir", "--seeds", "1-3"});
  stopped(verdicts, [&] { return files("v/verdicts") > 0; });
  const std::string table = content("v/verdicts.csv");
  expect_in(table, "\ntwo_moons,nre-c,");
  EXPECT_LT(std::count(table.begin(), table.end(), '\n'), 1 + 9) << "it had ended before the stop";
}

TEST_F(Experiment, AStopBeforeAnythingIsDoneKeepsEarlierTables) {
  const Words words = {"experiment", "fig3", "--quick", "--max-num-epochs", "2", "--out", "e"};
  ASSERT_EQ(run(words).code, 0);
  const std::string claims = content("e/fig3_claims.csv");
  const bool has_figure = exists("e/fig3.svg");
  fs::remove_all(folder_ / "e/importance_quick");
  Words limited = words;
  limited.insert(limited.end(), {"--time-limit", "0.001"});
  EXPECT_EQ(run(limited).code, 5);
  EXPECT_EQ(content("e/fig3_claims.csv"), claims);
  EXPECT_EQ(exists("e/fig3.svg"), has_figure);
}

TEST_F(Experiment, RecordsOfANewerProgramAreNotReplaced) {
  const Words words = tiny("fig13", "e", {"--counts", "2", "--gammas", "1"});
  ASSERT_EQ(run(words).code, 0);
  const std::string newer = "{\"schema_version\": 99}";
  write("e/fig13.json", newer);
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  expect_in(outcome.err, "e/fig13.json: schema_version = 99, but this program knows records up to version 1");
  EXPECT_EQ(content("e/fig13.json"), newer);
}

TEST_F(Experiment, TablesVerdictsAndTheDiagnosticRun) {
  const Words two = {"--tasks", "two_moons"};
  ASSERT_EQ(run(tiny("table3", "e", two)).code, 0);
  expect_in(content("e/table3.csv"), "\ntwo_moons,500,NRE-C,1,0.");
  const Outcome verdicts = run(tiny("verdicts", "e", two));
  ASSERT_EQ(verdicts.code, 0) << verdicts.err;
  EXPECT_EQ(files("e/networks"), 4u) << "one of the published kind, one of the default kind";
  std::set<std::string> schedules;
  for (const auto& entry : fs::directory_iterator(folder_ / "e/networks")) {
    if (entry.path().extension() != ".json") continue;
    const Record network = record_from_json(read_file(entry.path()), entry.path().string());
    schedules.insert(std::get<std::string>(*network.find("options.training.learning_rate_schedule")));
  }
  EXPECT_EQ(schedules, (std::set<std::string>{"constant", "cosine"}));
  expect_in(content("e/verdicts_confusion.csv"), "quality,trusted,cannot tell,not trusted\nbad,");
  EXPECT_EQ(files("e/verdicts"), 1u);
  const std::string settings = (run(tiny("table2", "e", two)), content("e/table2.csv"));
  expect_in(settings, "500,options.network.norm,\"\"\"layer\"\"\"");
  Words fig3 = {"experiment", "fig3", "--quick", "--max-num-epochs", "2", "--out", "e"};
  ASSERT_EQ(run(fig3).code, 0);
  EXPECT_TRUE(exists("e/fig3_roc.csv"));
}

TEST_F(Experiment, WhatIsDamagedIsMadeAgain) {
  const Words words = tiny("fig13", "e", {"--counts", "2", "--gammas", "1"});
  ASSERT_EQ(run(words).code, 0);
  const std::string table = content("e/fig13.csv");
  for (const char* folder : {"e/networks", "e/measured"}) {
    for (const auto& entry : fs::directory_iterator(folder_ / folder)) {
      const std::string name = std::string(folder) + "/" + entry.path().filename().string();
      const std::string whole = content(name);
      for (const std::string& damaged :
           {std::string(), std::string("{}"), whole.substr(0, whole.size() / 2)}) {
        write(name, damaged);
        const Outcome outcome = run(words);
        ASSERT_EQ(outcome.code, 0) << name << outcome.err;
        expect_in(outcome.err, "damaged");
        EXPECT_GT(content(name).size(), damaged.size()) << name;
      }
      fs::remove(folder_ / name);
      ASSERT_EQ(run(words).code, 0) << name;
      EXPECT_TRUE(exists(name));
    }
  }
  // All but the columns of seconds, which stand before the sampler.
  EXPECT_EQ(content("e/fig13.csv").substr(0, 120), table.substr(0, 120));
}

TEST_F(Experiment, ResultsOfOtherFlagsAreNotReplacedByAccident) {
  ASSERT_EQ(run(tiny("fig14", "e", {"--counts", "2", "--gammas", "1"})).code, 0);
  const std::string table = content("e/fig14.csv");
  const Outcome other = run(tiny("fig14", "e", {"--counts", "3", "--gammas", "1"}));
  EXPECT_EQ(other.code, 3);
  expect_in(other.err,
            "e: holds fig14 made with other flags; replace its tables by --overwrite (networks are kept)");
  EXPECT_EQ(content("e/fig14.csv"), table);
  ASSERT_EQ(run(tiny("fig14", "e", {"--counts", "3", "--gammas", "1", "--overwrite"})).code, 0);
  EXPECT_NE(content("e/fig14.csv"), table);
  EXPECT_EQ(files("e/networks"), 8u) << "those of the first stay";
}

TEST_F(Experiment, ClaimsAreNotDecidedOnOtherNetworksThanTheirs) {
  const Outcome outcome =
      run({"experiment", "fig14", "--tasks", "two_moons", "--counts", "2", "--gammas", "1", "--architectures",
           "small", "--norm", "layer", "--max-num-epochs", "1", "--out", "e"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.err, "claims are not decided");
  EXPECT_EQ(outcome.out.find("reproduced"), std::string::npos) << outcome.out;
}

TEST_F(Experiment, VerdictsOnTheNetworksOfABenchmark) {
  ASSERT_EQ(run({"benchmark", "--tasks",
                 "two_moons", "--budgets",
                 "200",       "--observations",
                 "1",         "--num-samples",
                 "100",       "--hidden-features",
                 "8",         "--num-blocks",
                 "1",         "--norm",
                 "layer",     "--num-classes",
                 "4",         "--batch-size",
                 "32",        "--max-num-epochs",
                 "2",         "--out",
                 "b"})
                .code,
            0);
  const Outcome outcome = run({"experiment", "verdicts", "--quick", "--benchmark", "b", "--out", "e"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(content("e/verdicts.csv"), "\ntwo_moons,nre-c,200,1,");
  const std::string verdicts = content("e/verdicts.csv");
  for (const auto& entry : fs::directory_iterator(folder_ / "e/verdicts"))
    write("e/verdicts/" + entry.path().filename().string(), "{");
  ASSERT_EQ(run({"experiment", "verdicts", "--quick", "--benchmark", "b", "--out", "e"}).code, 0);
  EXPECT_EQ(content("e/verdicts.csv").substr(0, 100), verdicts.substr(0, 100));
  EXPECT_EQ(files("e/networks"), 0u) << "none was trained";
}

TEST_F(Experiment, ListsMayComeInSeveralFlags) {
  const Outcome outcome =
      run({"experiment", "table2", "--tasks", "slcp,sir", "--tasks", "two_moons", "--out", "e"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(content("e/table2.json"), "\"networks\": 6");
  expect_in(run({"experiment", "table1", "--tasks", "slcp,sir", "--tasks", "sir", "--out", "f"}).err,
            "sir is given twice");
}

TEST_F(Experiment, RefusesWhatItCannotDo) {
  refuse({"experiment", "fig33", "--out", "e"}, 2, "experiment \"fig33\" is unknown");
  refuse({"experiment", "fig33", "--out", "e"}, 2, "did you mean \"fig3\"?");
  refuse({"experiment", "fig5"}, 2, "--out is missing");
  refuse({"experiment", "fig5", "--quick", "--full", "--out", "e"}, 2,
         "--quick, --full and --size: give one of them");
  refuse({"experiment", "fig5", "--gammas", "0", "--out", "e"}, 2, "--gammas: \"0\" must be a number > 0");
  refuse({"experiment", "fig5", "--counts", "1", "--out", "e"}, 2,
         "--counts: \"1\" must be a whole number from 2");
  refuse({"experiment", "fig5", "--regimes", "joined", "--out", "e"}, 2, "--regimes: \"joined\" is unknown");
  refuse({"experiment", "fig5", "--gamma", "3", "--out", "e"}, 2,
         "--gamma: is what an experiment varies or holds");
  refuse({"experiment", "convergence", "--gradients", "reset", "--out", "e"}, 2,
         "--gradients: is what an experiment");
  refuse({"experiment", "fig11", "--select-epoch", "loss", "--out", "e"}, 2,
         "--select-epoch: is what an experiment");
  refuse({"experiment", "fig9", "--regimes", "joint", "--out", "e"}, 2, "--regimes: has no effect on fig9");
  refuse({"experiment", "fig1", "--budgets", "1000", "--out", "e"}, 2, "--budgets: has no effect on fig1");
  refuse({"experiment", "fig3", "--tasks", "slcp", "--out", "e"}, 2, "--tasks: has no effect on fig3");
  refuse({"experiment", "table1", "--counts", "5", "--out", "e"}, 2, "--counts: has no effect on table1");
  // Before the networks in front of it are trained.
  refuse({"experiment", "fig1", "--counts", "2,2000", "--out", "e"}, 3, "count 2000");
  refuse({"experiment", "fig1", "--select-epoch", "i0", "--out", "e"}, 3, "select_epoch = \"i0\"");
  refuse({"experiment", "fig5", "--anchors", "nowhere", "--out", "e"}, 3, "nowhere: is no folder");
  refuse({"experiment", "fig5", "--benchmark", "b", "--out", "e"}, 2, "--benchmark: only verdicts");
  refuse({"experiment", "verdicts", "--benchmark", "b", "--out", "e"}, 3, "b: holds no finished cells");
  refuse({"experiment", "fig5", "--sbibm", "nowhere", "--out", "e"}, 3, "nowhere: holds no folder tasks");
}

}  // namespace
}  // namespace nrec::cli
