// Programs that answer row after row.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "simulation/external/tests/external_fixture.h"
#include "simulation/external/tests/stubs/behaviour.h"

namespace nrec {
namespace {

std::unique_ptr<RowRunner> make_runner(const ExternalSimulatorOptions& options,
                                       std::vector<std::size_t> x_shape) {
  ExternalSimulator simulator(options, {"a", "b"});
  simulator.set_x_shape(std::move(x_shape));
  return simulator.make_runner();
}

Rows many_rows(std::size_t count, std::uint64_t first_row = 0) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i % 900));
  return Rows(values, first_row);
}

void expect_all_right(const Rows& rows, const std::vector<RowResult>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    ASSERT_EQ(results[i].status, RowStatus::ok) << i << ": " << results[i].reason;
    ASSERT_EQ(results[i].x, rows.right_x(i)) << i;
  }
}

class Persistent : public ::testing::TestWithParam<const char*> {
 protected:
  StubCall call_{GetParam()};
  ExternalSimulatorOptions options_ = call_.options();
  void TearDown() override { EXPECT_TRUE(all_gone(call_.token)); }
};

TEST_P(Persistent, AnswersThousandsOfRowsInSeveralCalls) {
  const auto runner = make_runner(options_, {3});
  for (const std::size_t first : {0u, 5000u, 5001u}) {
    const Rows rows = many_rows(first == 5000 ? 1 : 5000, first);
    expect_all_right(rows, run_rows(*runner, rows));
  }
  EXPECT_TRUE(run_rows(*runner, Rows({})).empty());
}

TEST_P(Persistent, GetsOnWithManyFailures) {
  std::vector<double> values;
  for (int i = 0; i < 300; ++i)
    values.push_back(i % 10 == 3   ? stub::first_value(stub::segmentation_fault)
                     : i % 10 == 7 ? stub::first_value(stub::nan_value)
                                   : 1.0 * i);
  const Rows rows(values);
  const std::vector<RowResult> results = run_rows(*make_runner(options_, {3}), rows);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 10 == 3) {
      EXPECT_EQ(results[i].reason, "signal 11 (SIGSEGV)") << i;
    } else if (i % 10 == 7) {
      EXPECT_EQ(results[i].status, RowStatus::non_finite) << i;
    } else {
      expect_right(rows, results, i);
    }
  }
}

TEST_P(Persistent, NoRowHasTheWordsOfAnother) {
  std::vector<double> values;
  for (int i = 0; i < 300; ++i)
    values.push_back(i % 10 == 3   ? stub::first_value(stub::exit_1)
                     : i % 10 == 2 ? stub::first_value(stub::nan_value)
                                   : 1.0 * i);
  const std::vector<RowResult> results = run_rows(*make_runner(options_, {3}), Rows(values));
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(results[i].messages, i % 10 == 3 ? "about to leave\n" : "") << i;
}

TEST_P(Persistent, RepeatsFailedRowsAsOftenAsAsked) {
  options_.retries = 2;
  const Rows rows({1.0, stub::first_value(stub::exit_1), 2.0});
  const std::vector<RowResult> results = run_rows(*make_runner(options_, {3}), rows);
  EXPECT_EQ(results[1].reason, "exit code 1");
  EXPECT_EQ(results[1].attempts, 3u);
  EXPECT_EQ(results[1].messages, "about to leave\n") << "of the row itself, once";
  expect_right(rows, results, 0);
  expect_right(rows, results, 2);
}

TEST_P(Persistent, IsStartedAgainAfterSoManyRows) {
  options_.rows_per_process = 10;
  std::vector<double> values(100, stub::first_value(stub::leak));
  const std::vector<RowResult> results = run_rows(*make_runner(options_, {3}), Rows(values));
  std::map<double, int> rows_of_process;
  for (const RowResult& result : results) {
    ASSERT_EQ(result.status, RowStatus::ok) << result.reason;
    ++rows_of_process[result.x[2]];
  }
  EXPECT_EQ(rows_of_process.size(), 10u);
  for (const auto& [process, rows] : rows_of_process) EXPECT_EQ(rows, 10);
}

TEST_P(Persistent, IsStartedAgainWhenItsMemoryGrows) {
  // 100,000 calls leak 500 MB, more than the limit allows: without restarts rows would fail.
  const bool is_slow = call_.protocol == "lines";  // a row at a time
  options_.memory_limit = is_slow ? 160.0 : 400.0;
  std::vector<double> values(is_slow ? 40'000 : 100'000, stub::first_value(stub::leak));
  const std::vector<RowResult> results = run_rows(*make_runner(options_, {3}), Rows(values));
  std::set<double> processes;
  for (const RowResult& result : results) {
    ASSERT_EQ(result.status, RowStatus::ok) << result.reason;
    processes.insert(result.x[2]);
  }
  EXPECT_GE(processes.size(), 2u);
}

TEST_P(Persistent, DoesNotNoticeThatItIsKilled) {
  setenv("NREC_STUB_ROW_US", "50", 1);
  const auto runner = make_runner(options_, {3});
  unsetenv("NREC_STUB_ROW_US");
  const Rows rows = many_rows(4000);
  std::atomic<bool> is_over{false};
  std::atomic<int> kills{0};
  std::thread killer([&] {
    // No more than a row may be interrupted.
    while (!is_over && kills < 5) {
      for (const int process :
           processes_with(call_.protocol == "library" ? NREC_STUB_LIBRARY : call_.token)) {
        if (kill(process, SIGKILL) == 0) ++kills;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
    }
  });
  const std::vector<RowResult> results = run_rows(*runner, rows);
  is_over = true;
  killer.join();
  expect_all_right(rows, results);
  EXPECT_GE(kills, 1);
}

INSTANTIATE_TEST_SUITE_P(Protocols, Persistent, ::testing::Values("lines", "ids", "npy", "library"),
                         [](const auto& protocol) { return std::string(protocol.param); });

// A script in a folder of its own that notes each of its starts.
struct Script {
  WorkFolder folder;
  ExternalSimulatorOptions options;

  Script(const std::string& text, const std::string& line) {
    folder.write("sim.sh", "#!/bin/sh\necho start >> starts\n" + text);
    options.command = "./sim.sh";
    options.line = line;
    options.folder = folder.path();
    options.scratch = folder.path() / "scratch";
    options.row_time_limit = 60.0;
  }
  std::size_t starts() const {
    const std::string text = folder.read("starts");
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
};

TEST(LinesProtocol, IsTheDefaultWithoutPlaceholders) {
  Script script("while read a b; do echo $b $a; done", "{theta}");
  const Rows rows({1.5, 2.5});
  const std::vector<RowResult> results = run_rows(*make_runner(script.options, {2}), rows);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(results[i].x, (std::vector<double>{rows.theta(i, 1), rows.theta(i, 0)}));
}

TEST(LinesProtocol, KeepsProgramsThatNameTheirRows) {
  Script script("while read row rest; do echo $row $rest; done", "{row} {theta}");
  const auto runner = make_runner(script.options, {2});
  for (int call = 0; call < 5; ++call)
    run_rows(*runner, many_rows(100, static_cast<std::uint64_t>(call) * 100));
  EXPECT_EQ(script.starts(), 1u);
}

TEST(LinesProtocol, EndsOthersWithEveryCallToBeSure) {
  Script script("while read rest; do echo $rest; done", "{theta}");
  const auto runner = make_runner(script.options, {2});
  for (int call = 0; call < 3; ++call) run_rows(*runner, many_rows(10));
  EXPECT_EQ(script.starts(), 3u);
}

TEST(LinesProtocol, StartsProgramsAgainThatEndByThemselves) {
  Script script("for i in 1 2 3; do read row rest || exit 0; echo $row $rest; done", "{row} {theta}");
  const Rows rows = many_rows(20);
  const std::vector<RowResult> results = run_rows(*make_runner(script.options, {2}), rows);
  for (const RowResult& result : results) EXPECT_EQ(result.status, RowStatus::ok) << result.reason;
}

TEST(LinesProtocol, FindsALineTooManyWhereverItIs) {
  // Ten numbers further on, the lines would all look right but belong to their neighbours.
  Script script("n=0; while read a b; do n=$((n+1)); echo $a $b; if [ $a = 17 ]; then echo 0 0; fi; done",
                "{theta}");
  std::vector<double> values;
  for (int i = 0; i < 60; ++i) values.push_back(i);
  const Rows rows(values);
  const std::vector<RowResult> results = run_rows(*make_runner(script.options, {2}), rows);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 17) {
      EXPECT_EQ(results[i].status, RowStatus::wrong_shape);
      EXPECT_EQ(results[i].reason, "more numbers after the answer");
    } else {
      EXPECT_EQ(results[i].x, (std::vector<double>{rows.theta(i, 0), rows.theta(i, 1)})) << i;
    }
  }
}

TEST(LinesProtocol, FindsALateLineTooMany) {
  Script script("while read a b; do echo $a $b; if [ $a = 5 ]; then (sleep 0.1; echo 0 0) & fi; done; wait",
                "{theta}");
  const Rows rows({1, 2, 3, 4, 5, 6, 7, 8});
  const std::vector<RowResult> results = run_rows(*make_runner(script.options, {2}), rows);
  for (std::size_t i = 0; i < 8; ++i) {
    const std::vector<double> right = {rows.theta(i, 0), rows.theta(i, 1)};
    EXPECT_EQ(results[i].status, i == 4 ? RowStatus::wrong_shape : RowStatus::ok) << i;
    EXPECT_EQ(results[i].x, i == 4 ? std::vector<double>() : right) << i;
  }
}

TEST(LinesProtocol, KeepsTheWordsOfARefusal) {
  Script script("while read a b; do echo 'refused   mass is negative '; done", "{theta}");
  const RowResult result = run_rows(*make_runner(script.options, {2}), Rows({1.5}))[0];
  EXPECT_EQ(result.status, RowStatus::refused);
  EXPECT_EQ(result.reason, "refused: mass is negative");
}

TEST(LinesProtocol, GivesTheFirstAnswerTimeToStart) {
  Script script("sleep 1.3; while read row rest; do echo $row $rest; done", "{row} {theta}");
  script.options.row_time_limit = 0.8;
  ExternalSimulator simulator(script.options, {"a", "b"});
  const PreflightReport report = fly(simulator, preflight_theta({1.5}));
  EXPECT_GT(report.startup_seconds, 1.0);
  EXPECT_EQ(report.row_time_limit, 0.8);
  EXPECT_EQ(run_rows(*simulator.make_runner(), Rows({1.5}))[0].status, RowStatus::ok);
}

}  // namespace
}  // namespace nrec
