// nrec benchmark: records and tables, going on after any end, refusals.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "nrec/io/json.h"
#include "program.h"

namespace nrec::cli {
namespace {

namespace fs = std::filesystem;

/// A cell of a fraction of a second.
const Words kSmall = {"--hidden-features",     "8", "--num-blocks",  "1",   "--norm",          "layer",
                      "--num-classes",         "4", "--num-samples", "100", "--learning-rate", "3e-3",
                      "--training-batch-size", "32"};

Words words(const std::vector<std::string>& more, const Words& rest = kSmall) {
  Words all = {"benchmark"};
  all.insert(all.end(), more.begin(), more.end());
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

/// Six cells.
Words six(const std::string& out, const std::string& epochs = "150") {
  return words({"--tasks", "two_moons", "--algorithms", "nre-a,nre-b,nre-c", "--budgets", "200", "--seeds",
                "1-2", "--observations", "3", "--max-num-epochs", epochs, "--stop-after-epochs", "0",
                "--parallel", "2", "--out", out});
}

/// Lines of a table, or of a record, without what is measured in seconds.
std::string without_times(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line, result;
  while (std::getline(lines, line)) {
    for (int i = 0; i < 4; ++i) line.resize(line.rfind(','));
    result += line + "\n";
  }
  return result;
}

std::string without_times(const Record& record) {
  Record rest;
  for (const auto& [name, value] : record.entries()) {
    if (name.find("seconds") == std::string::npos && name != "threads" && name != "train_resumed")
      rest.set(name, value);
  }
  return record_to_json(rest);
}

class Benchmark : public ProgramTest {
 protected:
  std::size_t count(const std::string& name) const {
    std::error_code code;
    std::size_t files = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / name, code)) {
      // A file that is being written has a name with a dot in front. Beside the record of a cell is its network.
      const bool is_network = name.ends_with("cells") && entry.path().extension() == ".safetensors";
      files += !entry.path().filename().string().starts_with(".") && !is_network;
    }
    return files;
  }
  /// Waits until a folder holds so many files; false when it never does.
  bool wait_for(const std::string& name, std::size_t files) const {
    for (int i = 0; i < 6000; ++i) {
      if (count(name) >= files) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  void expect_equal_runs(const std::string& a, const std::string& b) const {
    EXPECT_EQ(without_times(content(a + "/table.csv")), without_times(content(b + "/table.csv")));
    ASSERT_EQ(count(a + "/cells"), count(b + "/cells"));
    for (const auto& entry : fs::directory_iterator(folder_ / a / "cells")) {
      const std::string name = entry.path().filename().string();
      if (entry.path().extension() == ".safetensors") {
        EXPECT_TRUE(content(a + "/cells/" + name) == content(b + "/cells/" + name)) << name;
        continue;
      }
      EXPECT_EQ(without_times(record_from_json(content(a + "/cells/" + name), name)),
                without_times(record_from_json(content(b + "/cells/" + name), name)));
    }
  }
  void refuse(const Words& line, int code, const std::string& message) const {
    const Outcome outcome = run(line);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    expect_in(outcome.err, message);
    EXPECT_FALSE(exists("b")) << "something was written: " << message;
  }
};

TEST_F(Benchmark, WritesARecordPerCellAndATable) {
  const Outcome outcome = run(
      words({"--tasks", "two_moons,gaussian_linear", "--algorithms", "nre-c", "--budgets", "1e2", "--seeds",
             "4,6", "--observations", "1-2", "--max-num-epochs", "3", "--out", "b", "--json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.last_line(), "nrec benchmark: done: 4 of 4 cells are done; results in b");
  std::istringstream lines(outcome.out);
  std::string line;
  std::vector<Record> cells;
  while (std::getline(lines, line)) cells.push_back(record_from_json(line, "stdout"));
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_EQ(std::get<std::string>(*cells[0].find("task")), "two_moons");
  EXPECT_EQ(std::get<std::int64_t>(*cells[1].find("seed")), 6);
  EXPECT_EQ(std::get<std::string>(*cells[3].find("task")), "gaussian_linear");
  for (const Record& cell : cells) {
    EXPECT_EQ(std::get<std::string>(*cell.find("algorithm")), "nre-c");
    EXPECT_EQ(std::get<std::string>(*cell.find("settings")), "default");
    EXPECT_EQ(std::get<std::int64_t>(*cell.find("budget")), 100);
    EXPECT_GE(std::get<std::int64_t>(*cell.find("best_epoch")), 1);
    const auto& c2st = std::get<std::vector<double>>(*cell.find("c2st"));
    ASSERT_EQ(c2st.size(), 2u);
    EXPECT_EQ(std::get<double>(*cell.find("c2st_mean")), (c2st[0] + c2st[1]) / 2);
    EXPECT_GT(c2st[0], 0.5) << "three epochs are no posterior";
    EXPECT_LT(c2st[0], 1.01);
    for (const char* name :
         {"mmd2", "gaussian_kl", "mean_error", "sd_error", "median_distance", "nltp", "reference_nltp"}) {
      for (const double value : std::get<std::vector<double>>(*cell.find(name)))
        EXPECT_TRUE(std::isfinite(value)) << name;
    }
    // The exact posterior is on average the best judge of the true parameters; here it knows much more.
    EXPECT_LT(std::get<double>(*cell.find("reference_nltp_mean")), std::get<double>(*cell.find("nltp_mean")));
    for (const char* name : {"train_seconds", "sample_seconds", "metric_seconds"})
      EXPECT_GT(std::get<double>(*cell.find(name)), 0.0) << name;
    EXPECT_FALSE(std::get<std::string>(*cell.find("sampler")).empty());
  }
  const std::string csv = content("b/table.csv");
  expect_in(csv, "task,algorithm,budget,num_seeds,num_failed,c2st_mean,c2st_sd_over_seeds,c2st_published,");
  expect_in(csv, "\ntwo_moons,nre-c,100,2,0,0.");
  expect_in(content("b/table.md"), "| average | nre-c | 100 |");
  EXPECT_TRUE(exists("b/references/two_moons/observation_2.npz"));
  EXPECT_FALSE(exists("b/running"));
  expect_in(run({"info", "b/cells/two_moons-nre-c-100-seed4.safetensors"}).out, "estimator");
  expect_in(content("b/record.json"), "\"cells_done\": 4");
}

TEST_F(Benchmark, GoesOnAfterKillsToTheSameTable) {
  ASSERT_EQ(run(six("whole")).code, 0);
  int kills = 0;
  for (std::size_t cells = 1; cells < 5; ++cells) {
    RunningProgram program = start(six("broken"));
    ASSERT_TRUE(wait_for("broken/cells", cells));
    std::this_thread::sleep_for(std::chrono::milliseconds(30 * cells));
    program.send(SIGKILL);
    kills += program.wait().code == 128 + SIGKILL;
  }
  EXPECT_GE(kills, 2) << "the runs were too short to be killed";
  const Outcome outcome = run(six("broken"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.err, " of 6 cells are done already");
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "broken"))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path() << " is left of a kill";
  expect_equal_runs("whole", "broken");
  // Control: another seed is another table.
  Words other = six("other");
  other[std::find(other.begin(), other.end(), "1-2") - other.begin()] = "3-4";
  ASSERT_EQ(run(other).code, 0);
  EXPECT_NE(without_times(content("whole/table.csv")), without_times(content("other/table.csv")));
}

TEST_F(Benchmark, GoesOnFromTheCheckpointOfACellInTraining) {
  const auto one = [](const std::string& out) {
    return words({"--tasks", "two_moons", "--budgets", "400", "--observations", "3", "--max-num-epochs",
                  "1500", "--stop-after-epochs", "0", "--out", out});
  };
  RunningProgram program = start(one("broken"));
  ASSERT_TRUE(wait_for("broken/running", 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  program.send(SIGKILL);
  ASSERT_EQ(program.wait().code, 128 + SIGKILL);
  ASSERT_EQ(count("broken/cells"), 0u);
  ASSERT_EQ(run(one("broken")).code, 0);
  const Record record = record_from_json(content("broken/cells/two_moons-nre-c-400-seed1.json"), "cell");
  EXPECT_TRUE(std::get<bool>(*record.find("train_resumed")));
  EXPECT_FALSE(exists("broken/running"));
  ASSERT_EQ(run(one("whole")).code, 0);
  expect_equal_runs("whole", "broken");
}

TEST_F(Benchmark, ResultsDoNotDependOnWhatRunsBesides) {
  ASSERT_EQ(run(six("two", "5")).code, 0);
  Words alone = six("one", "5");
  *(std::find(alone.begin(), alone.end(), "--parallel") + 1) = "1";
  alone.insert(alone.end(), {"--threads", "1"});
  ASSERT_EQ(run(alone).code, 0);
  expect_equal_runs("one", "two");
}

TEST_F(Benchmark, StopsOnSignalsAndAtItsTimeLimit) {
  for (const int signal : {SIGTERM, SIGINT}) {
    fs::remove_all(folder_ / "b");
    RunningProgram program = start(six("b", "100000000"));
    ASSERT_TRUE(wait_for("b/running", 1));
    program.send(signal);
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 128 + signal) << outcome.err;
    expect_in(outcome.last_line(),
              "nrec benchmark: stopped: stopped on request while running cells; 0 of 6 cells are "
              "done; the same command goes on; what there is lies in b");
  }
  Words limited = six("b", "100000000");
  limited.insert(limited.end(), {"--time-limit", "1"});
  const Outcome outcome = run(limited);
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  expect_in(outcome.last_line(),
            "nrec benchmark: budget spent: time limit reached while running cells; 0 of 6 cells");
  expect_in(content("b/table.csv"), "two_moons,nre-a,200,0,0,,");
}

TEST_F(Benchmark, StopsWhileItMakesReferencePosteriors) {
  const Words line =
      words({"--tasks", "bernoulli_glm", "--budgets", "100", "--observations", "1-200", "--out", "b"});
  RunningProgram program = start(line);
  ASSERT_TRUE(wait_for("b/references/bernoulli_glm", 1));
  program.send(SIGTERM);
  const Outcome stopped = program.wait();
  EXPECT_EQ(stopped.code, 128 + SIGTERM) << stopped.err;
  expect_in(stopped.last_line(),
            "stopped on request while preparing references; the cells were not looked at");
  const std::size_t kept = count("b/references/bernoulli_glm");
  Words limited = line;
  limited.insert(limited.end(), {"--time-limit", "0.3"});
  const Outcome spent = run(limited);
  EXPECT_EQ(spent.code, 5) << spent.err;
  expect_in(spent.last_line(), "time limit reached while preparing references");
  EXPECT_GE(count("b/references/bernoulli_glm"), kept) << "what was made is kept";
  EXPECT_FALSE(exists("b/table.csv"));
}

TEST_F(Benchmark, RefusesCellsOfOtherSettings) {
  const auto one = [](const Words& more) {
    Words line = words({"--tasks", "two_moons", "--budgets", "100", "--observations", "1", "--max-num-epochs",
                        "2", "--out", "b"});
    line.insert(line.end(), more.begin(), more.end());
    return line;
  };
  ASSERT_EQ(run(one({})).code, 0);
  const std::string before = content("b/cells/two_moons-nre-c-100-seed1.json");
  const Outcome other = run(one({"--gamma", "2"}));
  EXPECT_EQ(other.code, 3);
  expect_in(
      other.err,
      "b/cells/two_moons-nre-c-100-seed1.json: this cell was made with options.training.gamma = 1.0 but "
      "now it is 2.0; choose another --out, or replace the cells that are asked for by --overwrite");
  EXPECT_EQ(content("b/cells/two_moons-nre-c-100-seed1.json"), before);
  ASSERT_EQ(run(one({"--gamma", "2", "--overwrite"})).code, 0);
  expect_in(content("b/cells/two_moons-nre-c-100-seed1.json"), "\"options.training.gamma\": 2.0");
  // A damaged record is a cell that is run again; so is a damaged reference.
  write("b/cells/two_moons-nre-c-100-seed1.json", "{\"schema_version\": 1, ");
  write("b/references/two_moons/observation_1.npz", "rubbish");
  ASSERT_EQ(run(one({"--gamma", "2"})).code, 0);
  expect_in(content("b/cells/two_moons-nre-c-100-seed1.json"), "\"options.training.gamma\": 2.0");
  EXPECT_GT(fs::file_size(folder_ / "b/references/two_moons/observation_1.npz"), 1000u);
}

TEST_F(Benchmark, CountsCellsThatCouldNotBeMeasured) {
  const Outcome outcome = run({"benchmark", "--tasks",
                               "two_moons", "--budgets",
                               "100",       "--observations",
                               "1",         "--hidden-features",
                               "8",         "--norm",
                               "layer",     "--num-classes",
                               "4",         "--training-batch-size",
                               "32",        "--max-num-epochs",
                               "2",         "--num-samples",
                               "10",        "--out",
                               "b"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  expect_in(outcome.last_line(), "1 of 1 cells are done, 1 of them without a usable network or draws");
  expect_in(content("b/cells/two_moons-nre-c-100-seed1.json"), "10 draws are too few to compare");
  expect_in(content("b/table.csv"), "two_moons,nre-c,100,1,1,,");
}

TEST_F(Benchmark, KnowsTheSettingsOfThePublishedBenchmark) {
  const Outcome outcome = run({"benchmark", "--tasks", "two_moons", "--algorithms", "nre-b", "--budgets",
                               "200", "--observations", "1", "--settings", "sbibm", "--max-num-epochs", "3",
                               "--num-samples", "100", "--out", "b", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Record cell = record_from_json(outcome.out, "stdout");
  const auto whole = [&](const char* name) { return std::get<std::int64_t>(*cell.find(name)); };
  EXPECT_EQ(whole("options.network.hidden_features"), 50);
  EXPECT_EQ(whole("options.network.num_blocks"), 2);
  EXPECT_EQ(whole("options.training.num_classes"), 10);
  EXPECT_EQ(whole("options.training.training_batch_size"), 20) << "as many as validation rows";
  EXPECT_EQ(whole("options.training.stop_after_epochs"), 20);
  EXPECT_EQ(whole("options.training.max_num_epochs"), 3) << "flags come on top, wherever they stand";
  EXPECT_EQ(std::get<std::string>(*cell.find("options.network.norm")), "none");
  EXPECT_EQ(std::get<double>(*cell.find("options.training.learning_rate")), 5e-4);
  EXPECT_EQ(std::get<std::string>(*cell.find("sampler")), "slice");
}

TEST_F(Benchmark, PutsPublishedNumbersBeside) {
  write("anchors.csv",
        "task,budget,algorithm,c2st_mean,other\ntwo_moons,100,NRE-C,0.75,0.5\ntwo_moons,100,NRE,0.8,0.6\n"
        "two_moons,100,NPE,0.1,x\nslcp,100,NRE-C,0.9,x\n");
  const auto line = [](const Words& more) {
    Words all =
        words({"--tasks", "two_moons", "--algorithms", "nre-b,nre-c", "--budgets", "100", "--observations",
               "1", "--max-num-epochs", "2", "--out", "b", "--anchors", "anchors.csv"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  write("twice.csv", "task,budget,algorithm,c2st\ntwo_moons,100,nre-c,0.75\ntwo_moons,100,NRE-C,0.76\n");
  write("bad.csv", "task,budget,algorithm,c2st\ntwo_moons,100,nre-c,good\n");
  write("columns.csv", "task,budget,method,c2st\n");
  const auto with = [&](const std::string& file) {
    return words({"--tasks", "two_moons", "--budgets", "100", "--out", "b", "--anchors", file});
  };
  refuse(with("twice.csv"), 3, "twice.csv: line 3: a second number for two_moons nre-c 100");
  refuse(with("bad.csv"), 3, "bad.csv: line 2: c2st = \"good\" is no number");
  refuse(with("columns.csv"), 3,
         "columns.csv: has no column algorithm (its columns: task, budget, method, c2st)");
  refuse(with("none.csv"), 3, "none.csv");
  ASSERT_EQ(run(line({})).code, 0);
  expect_in(content("b/table.csv"), "two_moons,nre-b,100,1,0,");
  const auto published = [&](const std::string& algorithm) {
    std::istringstream lines(content("b/table.csv"));
    for (std::string row; std::getline(lines, row);) {
      if (!row.starts_with("two_moons," + algorithm)) continue;
      std::vector<std::string> cells;
      std::istringstream cells_of(row);
      for (std::string cell; std::getline(cells_of, cell, ',');) cells.push_back(cell);
      EXPECT_NEAR(std::stod(cells[8]), std::stod(cells[5]) - std::stod(cells[7]), 1e-12);
      return cells[7];
    }
    return std::string("no row");
  };
  EXPECT_EQ(published("nre-c"), "0.75");
  EXPECT_EQ(published("nre-b"), "0.8");
  ASSERT_EQ(run(line({"--anchor-column", "other"})).code, 0);
  EXPECT_EQ(published("nre-c"), "0.5");
}

TEST_F(Benchmark, RefusesWhatItCannotRun) {
  const auto with = [](const Words& more) {
    Words line = {"benchmark", "--out", "b"};
    line.insert(line.end(), more.begin(), more.end());
    return line;
  };
  refuse(with({}), 2, "--tasks is missing; name tasks, --tasks two_moons,slcp, or --tasks all");
  refuse({"benchmark", "--tasks", "slcp"}, 2, "--out is missing");
  refuse(with({"--tasks", "two_mons"}), 3, "did you mean two_moons?");
  refuse(with({"--tasks", "slcp,slcp"}), 2, "--tasks: slcp is given twice");
  const Words task = {"--tasks", "two_moons"};
  const auto also = [&](const Words& more) {
    Words line = with(task);
    line.insert(line.end(), more.begin(), more.end());
    return line;
  };
  refuse(also({"--algorithms", "nre-d"}), 2,
         "--algorithms: \"nre-d\" is unknown; it must be one of nre-a, nre-b, nre-c");
  refuse(also({"--budgets", "0"}), 2, "--budgets: \"0\" must be a whole number from 10 to 1000000000");
  refuse(also({"--budgets", "1000,many"}), 2, "--budgets: \"many\" must be a whole number");
  refuse(also({"--budgets", "1000,1e3"}), 2, "--budgets: 1000 is given twice");
  refuse(also({"--seeds", "5-1"}), 2, "--seeds: \"5-1\" must be a whole number");
  refuse(also({"--seeds", "-1"}), 2, "--seeds: \"-1\" must be a whole number");
  refuse(also({"--observations", "0-3"}), 2, "--observations: \"0-3\" must be a whole number from 1");
  refuse(also({"--observations", "11", "--sbibm", "."}), 2,
         "--observations: \"11\" must be a whole number from 1 to 10");
  refuse(also({"--sbibm", "nowhere"}), 3, "nowhere: holds no folder tasks; --sbibm names the folder");
  refuse(also({"--loss", "nre-b"}), 2, "--loss: the algorithms of a benchmark are its losses");
  refuse(also({"--fix", "parameter_1=0"}), 2, "--fix: a benchmark compares whole posteriors");
  refuse(also({"--settings", "papers"}), 2, "--settings");
  refuse(also({"--seed", "3"}), 2, "did you mean --seeds?");
  refuse(also({"--anchor-column", "c2st"}), 2, "--anchor-column names a column but no table is given");
  refuse(also({"--budgets", "100", "--settings", "published"}), 3,
         "nre-c with 100 simulations: train: num_classes = 99 needs a batch of at least 100");
  fs::create_directories(folder_ / "tasks");
  const Outcome missing = run(also({"--sbibm", "."}));
  EXPECT_EQ(missing.code, 3);
  expect_in(missing.err, "tasks/two_moons/files/num_observation_1/observation.csv");
}

TEST_F(Benchmark, ReadsThePublishedBenchmark) {
  const char* shared = std::getenv("NREC_SHARED");
  const fs::path sbibm = (shared ? fs::path(shared) : fs::path(NREC_SOURCE_DIR) / ".." / "shared") / "sbibm";
  if (!fs::exists(sbibm))
    GTEST_SKIP() << "no " << sbibm << ": put the shared data beside the checkout or set NREC_SHARED";
  const Outcome outcome =
      run(words({"--tasks", "two_moons", "--budgets", "100", "--observations", "2,5", "--max-num-epochs", "3",
                 "--sbibm", sbibm.string(), "--out", "b", "--json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Record cell = record_from_json(outcome.out, "stdout");
  EXPECT_EQ(std::get<std::string>(*cell.find("source")), "sbibm");
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(*cell.find("observations")),
            (std::vector<std::int64_t>{2, 5}));
  EXPECT_TRUE(exists("b/references/two_moons/sbibm_5.json"));
  EXPECT_FALSE(exists("b/references/two_moons/sbibm_1.json"));
}

}  // namespace
}  // namespace nrec::cli
