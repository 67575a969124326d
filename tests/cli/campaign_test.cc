// nrec simulate, export and info on campaigns, and nrec infer on top of them: whole runs of the program.
#include <signal.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "nrec/io/json.h"
#include "nrec/io/npz.h"
#include "nrec/simulation/campaign_store.h"
#include "toy_problem.h"

namespace nrec::cli {
namespace {

namespace fs = std::filesystem;

/// x = (mass + rate, a number made from the seed), by a shell script that is started once per row.
const std::string kCommand =
    "[simulations]\ncommand = \"sh sim.sh {mass} {rate} {seed}\"\nnum_simulations = 40\n";
const std::string kScript =
    "awk -v m=\"$1\" -v r=\"$2\" -v s=\"$3\" 'BEGIN { print m + r, s % 1000 / 1000 }'\n";
/// The same law by one program that answers line after line.
const std::string kLines =
    "[simulations]\ncommand = \"python3 lines.py\"\nline = \"{row} {seed} {theta}\"\nnum_simulations = "
    "3000\n";
const std::string kLinesScript =
    "import sys\n"
    "for line in sys.stdin:\n"
    "    row, seed, mass, rate = line.split()\n"
    "    print(row, float(mass) + float(rate), int(seed) % 1000 / 1000, mass, flush=True)\n";

class CampaignProgram : public ToyTest {
 protected:
  void SetUp() override {
    ToyTest::SetUp();
    write("sim.sh", kScript);
    write("lines.py", kLinesScript);
  }
  Record record_of(const Outcome& outcome) const { return record_from_json(outcome.out, "stdout"); }
  std::int64_t number(const Record& record, const std::string& name) const {
    const RecordValue* value = record.find(name);
    return value && std::holds_alternative<std::int64_t>(*value) ? std::get<std::int64_t>(*value) : -1;
  }
  /// Rows that the program has said to be durable.
  std::int64_t acknowledged() const {
    const std::string name = "p_campaign/progress-1-of-1.json";
    return exists(name) ? number(record_from_json(content(name), name), "num_stored") : 0;
  }
  SimulationSet stored(const std::string& folder) const { return CampaignReader(folder_ / folder).read(); }
};

TEST_F(CampaignProgram, SimulatesStoresTopsUpAndSaysWhenItIsComplete) {
  write("p.toml", kParameters + kCommand);
  const Outcome first = run({"simulate", "p.toml", "-n", "20", "--json"});
  ASSERT_EQ(first.code, 0) << first.err;
  expect_in(first.err, "pre-flight: x has 2 numbers");
  expect_in(first.last_line(), "20 of 20 simulations are stored");
  EXPECT_EQ(number(record_of(first), "campaign.num_new"), 20);
  const Outcome more = run({"simulate", "p.toml", "--workers", "2"});
  ASSERT_EQ(more.code, 0) << more.err;
  expect_in(more.last_line(), "40 of 40 simulations are stored, 20 of them new");
  EXPECT_EQ(more.err.find("pre-flight"), std::string::npos) << "the pre-flight is for new campaigns";
  expect_in(run({"simulate", "p.toml"}).last_line(), "nothing to do, the campaign is complete");
  const SimulationSet set = stored("p_campaign");
  ASSERT_EQ(set.num_rows(), 40u);
  for (std::size_t i = 0; i < set.num_rows(); ++i)
    EXPECT_NEAR(set.x(i, 0), set.theta(i, 0) + set.theta(i, 1), 1e-4);  // awk prints six digits
}

TEST_F(CampaignProgram, TheRowsDoNotDependOnWorkersShardsOrProtocolOfStarting) {
  write("p.toml", kParameters + kLines);
  ASSERT_EQ(run({"simulate", "p.toml", "--out", "one", "--workers", "1"}).code, 0);
  ASSERT_EQ(run({"simulate", "p.toml", "--out", "seven", "--workers", "7"}).code, 0);
  for (const char* shard : {"2/4", "1/4", "4/4"})
    ASSERT_EQ(run({"simulate", "p.toml", "--out", "four", "--shard", shard}).code, 0);
  const Environment slurm = {
      {"SLURM_ARRAY_TASK_ID", "12"}, {"SLURM_ARRAY_TASK_COUNT", "4"}, {"SLURM_ARRAY_TASK_MIN", "10"}};
  const Outcome third = run({"simulate", "p.toml", "--out", "four"}, slurm);
  ASSERT_EQ(third.code, 0) << third.err;
  expect_in(third.err, "shard 3 of 4");
  const SimulationSet one = stored("one");
  ASSERT_EQ(one.num_rows(), 3000u);
  for (const char* folder : {"seven", "four"}) {
    const SimulationSet other = stored(folder);
    EXPECT_EQ(other.theta.values(), one.theta.values()) << folder;
    EXPECT_EQ(other.x.values(), one.x.values()) << folder;
  }
}

TEST_F(CampaignProgram, EveryRowMatchesItsInputWhenEightWorkersAnswerAtRandomTimes) {
  write("echo.py",
        "import random, sys, time\n"
        "for line in sys.stdin:\n"
        "    time.sleep(random.random() * 0.01)\n"
        "    print(line.strip(), flush=True)\n");
  for (const char* line : {"", "line = \"{row} {theta}\"\n"}) {  // matched by order, and by row
    write("p.toml", kParameters + "[simulations]\ncommand = \"python3 echo.py\"\n" + line);
    const std::string folder = *line ? "by_row" : "by_order";
    const Outcome outcome = run({"simulate", "p.toml", "-n", "800", "--workers", "8", "--out", folder});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const SimulationSet set = stored(folder);
    ASSERT_EQ(set.num_rows(), 800u);
    EXPECT_EQ(set.x.values(), set.theta.values());
  }
}

TEST_F(CampaignProgram, SuddenEndsLoseNothing) {
  write("p.toml", kParameters + kLines);
  for (int i = 0; i < 6; ++i) {
    RunningProgram program = start({"simulate", "p.toml", "-n", "400000"});
    // The first times it is killed wherever it is, then after some more rows have become durable.
    const std::int64_t before = acknowledged();
    for (int k = 0; i > 1 && k < 3000 && acknowledged() == before; ++k)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(53 * i));
    program.send(SIGKILL);
    EXPECT_EQ(program.wait().code, 128 + SIGKILL);
  }
  const std::size_t before = CampaignReader(folder_ / "p_campaign").summary().num_rows;
  EXPECT_GE(before, static_cast<std::size_t>(acknowledged()));
  EXPECT_GT(before, 0u);
  const Outcome outcome = run({"simulate", "p.toml", "-n", std::to_string(before + 500)});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(run({"simulate", "p.toml", "-n", std::to_string(before + 500), "--out", "unbroken"}).code, 0);
  const SimulationSet broken = CampaignReader(folder_ / "p_campaign").read(before + 500);
  const SimulationSet unbroken = stored("unbroken");
  EXPECT_EQ(broken.x.values(), unbroken.x.values());
  EXPECT_EQ(broken.theta.values(), unbroken.theta.values());
}

TEST_F(CampaignProgram, ASignalEndsItCleanlyAndTheSameCommandGoesOn) {
  write("slow.sh", "sleep 0.05; echo \"$1\"\n");
  write("p.toml",
        kParameters + "[simulations]\ncommand = \"sh slow.sh {mass} {rate}\"\nnum_simulations = 100000\n");
  RunningProgram program = start({"simulate", "p.toml"});
  for (int i = 0; i < 500 && !exists("p_campaign/progress-1-of-1.json"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  const Outcome live = run({"info", "p_campaign"});
  EXPECT_EQ(live.code, 0) << live.err;
  expect_in(live.out, "writing.rows-1-of-1.num_stored");
  expect_in(live.out, "seconds_left");
  const Outcome second = run({"simulate", "p.toml"});
  EXPECT_EQ(second.code, 3) << second.err;
  program.send(SIGTERM);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 143) << outcome.err;
  expect_in(outcome.last_line(), "the same command goes on");
  const Outcome limited = run({"simulate", "p.toml", "--time-limit", "1"});
  EXPECT_EQ(limited.code, 5) << limited.err;
}

TEST_F(CampaignProgram, AChangedProblemOrSimulatorIsRefusedUnlessToldSo) {
  write("p.toml", kParameters + kCommand);
  ASSERT_EQ(run({"simulate", "p.toml"}).code, 0);
  const Outcome seed = run({"simulate", "p.toml", "--seed", "2"});
  EXPECT_EQ(seed.code, 3);
  expect_in(seed.err, "seed");
  write("sim.sh", kScript + "# another version\n");
  const Outcome changed = run({"simulate", "p.toml", "-n", "50"});
  EXPECT_EQ(changed.code, 3);
  expect_in(changed.err, "--accept-changes");
  const Outcome accepted = run({"simulate", "p.toml", "-n", "50", "--accept-changes"});
  EXPECT_EQ(accepted.code, 0) << accepted.err;
  EXPECT_EQ(stored("p_campaign").num_rows(), 50u);
  write("p.toml",
        "[parameters]\nmass = { prior = \"uniform\", low = 0, high = 4 }\nrate = { prior = \"uniform\", "
        "low = 0, high = 5 }\n" +
            kCommand);
  EXPECT_EQ(run({"simulate", "p.toml", "-n", "50"}).code, 3);
}

TEST_F(CampaignProgram, ExportWritesWhatInferReads) {
  write("p.toml", kParameters + kLines);
  ASSERT_EQ(run({"simulate", "p.toml", "-n", "300"}).code, 0);
  const Outcome outcome = run({"export", "p_campaign", "--out", "rows.npz"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const NamedArrays arrays = read_npz(folder_ / "rows.npz");
  ASSERT_NE(find_array(arrays, "theta"), nullptr);
  EXPECT_EQ(find_array(arrays, "theta")->shape, (std::vector<std::size_t>{300, 2}));
  EXPECT_EQ(find_array(arrays, "x")->shape, (std::vector<std::size_t>{300, 3}));
  EXPECT_EQ(find_array(arrays, "status")->values, std::vector<double>(300, 0.0));
  const Outcome again = run({"export", "p_campaign", "--out", "rows.npz"});
  EXPECT_EQ(again.code, 3);
  expect_in(again.err, "--overwrite");
  EXPECT_EQ(run({"export", "p_campaign", "--out", "rows.npz", "--overwrite", "-n", "10"}).code, 0);
}

TEST_F(CampaignProgram, CheckTakesACampaignOfItsOwnSeed) {
  write("p.toml", kParameters + kLines);
  ASSERT_EQ(run({"train", "p.toml", "-n", "300", "--max-num-epochs", "2", "--out", "model"}).code, 0);
  ASSERT_EQ(run({"simulate", "p.toml", "-n", "120", "--seed", "99", "--out", "held_out"}).code, 0);
  const Outcome outcome = run({"check", "--model", "model", "--simulations", "held_out", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::get<std::int64_t>(*record_of(outcome).find("simulations.num_rows")), 120);
}

TEST_F(CampaignProgram, InferRunsTheCampaignAndUsesItsRows) {
  write("x_o.csv", "5,0.5,2.5\n");
  write("p.toml", kParameters + kLines + kObservation + kSmall);
  ASSERT_EQ(run({"simulate", "p.toml", "-n", "1000"}).code, 0);
  const Outcome outcome = run({"infer", "p.toml", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Record record = record_of(outcome);
  EXPECT_EQ(number(record, "campaign.num_new"), 2000);
  EXPECT_EQ(number(record, "simulations.num_rows"), 3000);
  // Another seed trains another network on the same rows; the rows alone, without their simulator, are enough.
  const Outcome other = run({"infer", "p.toml", "--json", "--seed", "5", "--out", "other"});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_EQ(number(record_of(other), "campaign.num_new"), 0);
  write("q.toml", kParameters + "[simulations]\ncampaign = \"p_campaign\"\n" + kObservation + kSmall);
  const Outcome alone = run({"infer", "q.toml", "--json"});
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(content("q_run/draws.csv"), content("p_run/draws.csv"));
}

TEST_F(CampaignProgram, ConfigOfARunRepeatsItFromAnywhereAndPathsMayBeRelative) {
  std::filesystem::create_directory(folder_ / "inner");
  write("inner/lines.py", kLinesScript);
  write("inner/x_o.csv", "5,0.5,2.5\n");
  write("inner/p.toml", kParameters + kLines + kObservation + kSmall);
  ASSERT_EQ(run({"infer", "inner/p.toml", "-n", "500"}).code, 0);
  const Outcome again = run({"infer", "p_run/config.toml", "--out", "again"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(content("again/draws.csv"), content("p_run/draws.csv"));
  write("inner/l.toml", kParameters + "[simulations]\nlibrary = \"libnot_there.so\"\n");
  const Outcome library = run({"simulate", "inner/l.toml"});
  EXPECT_EQ(library.code, 3);
  EXPECT_EQ(library.err.find("inner/inner"), std::string::npos) << library.err;
}

TEST_F(CampaignProgram, AllRowsFailingIsNoSuccessHoweverFastItIs) {
  write("ok.flag", "");
  write("flag.py",
        "import os, sys\n"
        "for line in sys.stdin:\n"
        "    row = line.split()[0]\n"
        "    print(row, 'refused not today' if not os.path.exists('ok.flag') else '1 2', flush=True)\n");
  write("p.toml", kParameters + "[simulations]\ncommand = \"python3 flag.py\"\nline = \"{row} {theta}\"\n");
  ASSERT_EQ(run({"simulate", "p.toml", "-n", "1"}).code, 0);
  std::filesystem::remove(folder_ / "ok.flag");
  const Outcome outcome = run({"simulate", "p.toml", "-n", "500"});
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  expect_in(outcome.last_line(), "mend the simulator");
}

TEST_F(CampaignProgram, NoRowIsBlamedForWhatOthersDidToItsProgram) {
  // Breaks down at the seventh row that one process is asked for, talks after some answers, and fails for some seeds.
  write("tired.py",
        "import sys\n"
        "for number, line in enumerate(sys.stdin):\n"
        "    row, seed, mass, rate = line.split()\n"
        "    if number == 6 or int(seed) % 7 == 0:\n"
        "        sys.exit(1)\n"
        "    print(row, mass, flush=True)\n"
        "    if int(seed) % 5 == 0:\n"
        "        print('DEBUG: slowly', flush=True)\n");
  write("p.toml",
        kParameters + "[simulations]\ncommand = \"python3 tired.py\"\nline = \"{row} {seed} {theta}\"\n");
  for (const char* workers : {"1", "3", "7"}) {
    const Outcome outcome = run({"simulate", "p.toml", "-n", "60", "--workers", workers, "--out", workers});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const SimulationSet set = stored(workers);
    ASSERT_EQ(set.num_rows(), 60u);
    for (std::uint64_t row = 0; row < 60; ++row) {
      const RowStatus expected = row_seed(1, row) % 7 == 0 ? RowStatus::failed : RowStatus::ok;
      EXPECT_EQ(set.status[row], expected) << "row " << row << ", workers " << workers;
    }
  }
}

TEST_F(CampaignProgram, APreflightIsUnderTheTimeLimit) {
  write("slow.sh", "sleep 60; echo 1\n");
  write("p.toml", kParameters + "[simulations]\ncommand = \"sh slow.sh {mass} {rate}\"\n");
  const Outcome outcome = run({"simulate", "p.toml", "--time-limit", "1"});
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  expect_in(outcome.last_line(), "the time limit was over in the pre-flight");
}

TEST_F(CampaignProgram, ADatabaseThatIsTakenAwayEndsIt) {
  write("slow.sh", "sleep 0.02; echo \"$1\"\n");
  write("p.toml",
        kParameters + "[simulations]\ncommand = \"sh slow.sh {mass} {rate}\"\nnum_simulations = 100000\n");
  RunningProgram program = start({"simulate", "p.toml"});
  for (int i = 0; i < 3000 && acknowledged() == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::filesystem::remove(folder_ / "p_campaign/rows-1-of-1.sqlite");
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  expect_in(outcome.err, "was removed or replaced while it was written");
}

TEST_F(CampaignProgram, InferStopsOnFailuresWithCodeSixAndExplains) {
  write("half.py",
        "import sys\n"
        "for line in sys.stdin:\n"
        "    row, seed, mass, rate = line.split()\n"
        "    answer = 'refused too massive' if float(mass) > 2.5 else f'{mass} {rate} {int(seed) % 10}'\n"
        "    print(row, answer, flush=True)\n");
  write("x_o.csv", "1,2,3\n");
  write("p.toml", kParameters +
                      "[simulations]\ncommand = \"python3 half.py\"\nline = \"{row} {seed} {theta}\"\n"
                      "num_simulations = 400\n" +
                      kObservation + kSmall);
  const Outcome outcome = run({"infer", "p.toml"});
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  expect_in(outcome.err, "bias");
  const Outcome info = run({"info", "p_campaign"});
  expect_in(info.out, "refused: too massive");
}

TEST_F(CampaignProgram, ASimulatorThatNeverWorksIsRefusedBeforeTheCampaign) {
  write("p.toml", kParameters + "[simulations]\ncommand = \"./not_there {mass} {rate}\"\n");
  const Outcome missing = run({"simulate", "p.toml"});
  EXPECT_EQ(missing.code, 3) << missing.err;
  expect_in(missing.err, "not_there");
  EXPECT_FALSE(exists("p_campaign/rows-1-of-1.sqlite"));
  write("bad.sh", "echo cannot work >&2; exit 9\n");
  write("p.toml", kParameters + "[simulations]\ncommand = \"sh bad.sh {mass} {rate}\"\n");
  const Outcome failing = run({"simulate", "p.toml"});
  EXPECT_EQ(failing.code, 3) << failing.err;
  expect_in(failing.err, "exit code 9");
  expect_in(failing.err, "cannot work");
}

TEST_F(CampaignProgram, ATaskIsASimulatorLikeAnyOther) {
  const Outcome outcome = run({"simulate", "--task", "two_moons", "-n", "500", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(stored("two_moons_campaign").num_rows(), 500u);
  const Outcome info = run({"info", "two_moons_campaign"});
  expect_in(info.out, "task two_moons");
  expect_in(info.out, "rows.ok");
}

TEST_F(CampaignProgram, WrongWordsAreRefused) {
  write("p.toml", kParameters + kCommand);
  for (const char* shard : {"0/4", "5/4", "1", "a/b", "1/4x"}) {
    const Outcome outcome = run({"simulate", "p.toml", "--shard", shard});
    EXPECT_EQ(outcome.code, 2) << shard;
    expect_in(outcome.err, "write --shard 3/16");
  }
  write("files.toml", kParameters + kSimulations);
  expect_in(run({"simulate", "files.toml"}).err, "files hold simulations already");
  write("none.toml", kParameters);
  expect_in(run({"simulate", "none.toml"}).err, "needs a source");
  write("two.toml", kParameters + "[simulations]\ncommand = \"a {mass}\"\nlibrary = \"b.so\"\n");
  expect_in(run({"simulate", "two.toml"}).err, "two sources, command and library");
  EXPECT_EQ(run({"export", "nowhere"}).code, 3);
}

}  // namespace
}  // namespace nrec::cli
