// Stop requests, kill -9, floods: nothing hangs, nothing is left, memory stays flat.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "simulation/external/tests/external_fixture.h"
#include "simulation/external/tests/stubs/behaviour.h"

namespace nrec {
namespace {

constexpr const char* kProtocols[] = {"run", "files", "stdin", "lines", "ids", "npy", "library"};

// The words by which processes of a call can be found.
std::string mark_of(const StubCall& call) {
  return call.protocol == "library" ? NREC_STUB_WORKER : call.token;
}

std::string protocol_name(const ::testing::TestParamInfo<const char*>& protocol) { return protocol.param; }

class Interruption : public ::testing::TestWithParam<const char*> {};

TEST_P(Interruption, StopRequestsAreObeyedAtOnce) {
  const StubCall call{GetParam()};
  ExternalSimulator simulator(call.options(), {"a", "b"});
  simulator.set_x_shape({3});
  const auto runner = simulator.make_runner();
  const Rows rows({1.0, 2.0, 3.0, stub::first_value(stub::hang_ignoring_term), 4.0});
  StopRequest stop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    stop.request(2);
  });
  std::vector<RowResult> results;
  const Stopwatch watch;
  runner->run(
      rows.tasks, [&](RowResult&& result) { results.push_back(std::move(result)); }, stop);
  stopper.join();
  EXPECT_LT(watch.seconds(), 15.0) << "the row itself would take for ever";
  // What was reported is right, and the row that was running was not.
  EXPECT_LE(results.size(), 3u);
  for (const RowResult& result : results) {
    EXPECT_EQ(result.status, RowStatus::ok);
    EXPECT_EQ(result.x, rows.right_x(result.row));
  }
  EXPECT_TRUE(processes_with(call.token).empty());
  // After a stop the runner can go on.
  const Rows more({5.0, 6.0});
  expect_right(more, run_rows(*runner, more), 1);
}

TEST_P(Interruption, StopsBeforeItStartsWhenAsked) {
  ExternalSimulator simulator(StubCall{GetParam()}.options(), {"a", "b"});
  simulator.set_x_shape({3});
  StopRequest stop;
  stop.request(2);
  const Rows rows({1.0});
  simulator.make_runner()->run(
      rows.tasks, [](RowResult&&) { ADD_FAILURE(); }, stop);
}

TEST_P(Interruption, SimulatorsDieWithAKilledOwner) {
  const StubCall call{GetParam()};
  ExternalSimulatorOptions options = call.options();
  const WorkFolder work;
  options.scratch = work.path();
  const pid_t owner = fork();
  if (owner == 0) {
    ExternalSimulator simulator(options, {"a", "b"});
    simulator.set_x_shape({3});
    const Rows rows({1.0, stub::first_value(stub::hang_in_escaped_grandchild)});
    simulator.make_runner()->run(
        rows.tasks, [](RowResult&&) {}, StopRequest());
    _exit(1);
  }
  EXPECT_TRUE(are_there(mark_of(call), 2));
  EXPECT_EQ(processes_with(mark_of(call)).size(), 2u) << "the simulator and its child in another session";
  kill(owner, SIGKILL);
  ASSERT_EQ(waitpid(owner, nullptr, 0), owner);
  EXPECT_TRUE(all_gone(mark_of(call)));
  // What it left on disk is removed by the next one.
  EXPECT_FALSE(std::filesystem::is_empty(work.path()));
  ExternalSimulator next(options, {"a", "b"});
  EXPECT_TRUE(std::filesystem::is_empty(work.path()));
}

INSTANTIATE_TEST_SUITE_P(Protocols, Interruption, ::testing::ValuesIn(kProtocols), protocol_name);

// Peak resident memory of this process in MB since the last reset.
double peak_memory() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024.0;
  }
  return 0.0;
}

class Flood : public ::testing::TestWithParam<const char*> {};

TEST_P(Flood, IsDrainedInFlatMemory) {
  const StubCall call{GetParam()};
  ExternalSimulatorOptions options = call.options();
  options.row_time_limit = 300.0;
  ExternalSimulator simulator(options, {"a", "b"});
  simulator.set_x_shape({3});
  const auto runner = simulator.make_runner();
  run_rows(*runner, Rows({1.0}));
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
  const double before = peak_memory();
  const Rows rows({1.0, stub::first_value(stub::flood_stdout), stub::first_value(stub::flood_stderr), 2.0});
  const std::vector<RowResult> results = run_rows(*runner, rows);
  const double peak = peak_memory();
  RecordProperty("peak_growth_mb", std::to_string(peak - before));
  EXPECT_GT(before, 1.0);
  EXPECT_LT(peak - before, 24.0) << "megabytes more than before " << stub::flood_megabytes() << " MB came";
  expect_right(rows, results, 2);
  expect_right(rows, results, 3);
}

INSTANTIATE_TEST_SUITE_P(Protocols, Flood, ::testing::ValuesIn(kProtocols), protocol_name);

TEST(ManyRunners, WorkSideBySide) {
  const StubCall call{"ids"};
  ExternalSimulator simulator(call.options(), {"a", "b"});
  simulator.set_x_shape({3});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([runner = simulator.make_runner(), i] {
      std::vector<double> values(500, 1.0 * i);
      values[250] = stub::first_value(stub::segmentation_fault);
      const Rows rows(values, static_cast<std::uint64_t>(1000 * i));
      const std::vector<RowResult> results = run_rows(*runner, rows);
      for (std::size_t row = 0; row < values.size(); ++row) {
        if (row != 250) expect_right(rows, results, row);
      }
      EXPECT_EQ(results[250].reason, "signal 11 (SIGSEGV)");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(all_gone(call.token));
  EXPECT_EQ(num_children(), 0u);
}

}  // namespace
}  // namespace nrec
