// What simulators do wrong, and how each of it must end: as the status of the row that did it, with the rows beside it
// right, no process left and no wait.
#include <mutex>
#include <set>
#include <thread>

#include "simulation/external/tests/external_fixture.h"
#include "simulation/external/tests/stubs/behaviour.h"

namespace nrec {
namespace {

using stub::Code;

struct Case {
  Code code;
  RowStatus status;
  const char* reason;  // a part of it
  const char* protocols;
};

constexpr const char* kAll = "run files stdin lines ids npy library";
constexpr const char* kPrograms = "run files stdin lines ids npy";
constexpr const char* kOnce = "run files stdin";
constexpr const char* kFromStdout = "run stdin";
constexpr const char* kPersistent = "lines ids npy library";
constexpr const char* kPersistentPrograms = "lines ids npy";

// The first answer of a program: it may take the time of starting, besides, which depends on what else runs.
constexpr const char* kLate = " s: 1.5 s for the row and ";

const Case kCases[] = {
    {Code::exit_1, RowStatus::failed, "exit code 1", kAll},
    {Code::exit_255, RowStatus::failed, "exit code 255", kAll},
    {Code::exit_77, RowStatus::refused, "exit code 77", kAll},
    {Code::segmentation_fault, RowStatus::failed, "signal 11 (SIGSEGV)", kAll},
    {Code::abort_, RowStatus::failed, "signal 6 (SIGABRT)", kAll},
    {Code::killed, RowStatus::failed, "signal 9 (SIGKILL)", kAll},
    {Code::terminated, RowStatus::failed, "signal 15 (SIGTERM)", kAll},
    {Code::hang, RowStatus::timed_out, "no end after 1.5 s", kOnce},
    {Code::hang, RowStatus::timed_out, kLate, kPersistent},
    {Code::hang_ignoring_term, RowStatus::timed_out, "no end after 1.5 s", kOnce},
    {Code::hang_ignoring_term, RowStatus::timed_out, kLate, kPersistent},
    {Code::hang_in_grandchild, RowStatus::timed_out, "no end after 1.5 s", kOnce},
    {Code::hang_in_grandchild, RowStatus::timed_out, kLate, kPersistent},
    {Code::hang_in_escaped_grandchild, RowStatus::timed_out, "no end after 1.5 s", kOnce},
    {Code::hang_in_escaped_grandchild, RowStatus::timed_out, kLate, kPersistent},
    {Code::leave_escaped_grandchild, RowStatus::ok, "", kAll},
    {Code::stop_itself, RowStatus::timed_out, "no end after 1.5 s", kOnce},
    {Code::stop_itself, RowStatus::timed_out, kLate, kPersistent},
    {Code::close_stdout_and_run_on, RowStatus::timed_out, "no end after 1.5 s", kFromStdout},
    {Code::close_stdout_and_run_on, RowStatus::timed_out, kLate, kPersistentPrograms},
    {Code::nan_value, RowStatus::non_finite, "x[", kAll},
    {Code::infinite_value, RowStatus::non_finite, "inf", kAll},
    {Code::one_too_few, RowStatus::wrong_shape, "2 numbers, 3 expected", "run files stdin lines ids"},
    {Code::one_too_few, RowStatus::wrong_shape, "a frame of shape (1, 2), (1, 3) expected", "npy"},
    {Code::one_too_many, RowStatus::wrong_shape, "4 numbers, 3 expected", "run files stdin lines ids"},
    {Code::one_too_many, RowStatus::wrong_shape, "a frame of shape (1, 4), (1, 3) expected", "npy"},
    {Code::no_answer, RowStatus::wrong_shape, "no numbers, 3 expected", kFromStdout},
    {Code::no_answer, RowStatus::wrong_shape, "no file {x_file}", "files"},
    {Code::no_answer, RowStatus::timed_out, kLate, kPersistentPrograms},
    {Code::text_before, RowStatus::wrong_shape, "text \"mass=\" after 0 numbers",
     "run files stdin lines ids"},
    {Code::text_before, RowStatus::wrong_shape, "instead of a .npy frame", "npy"},
    {Code::text_before, RowStatus::ok, "", "library"},
    {Code::text_after, RowStatus::wrong_shape, "text \"seconds\" after 3 numbers",
     "run files stdin lines ids"},
    {Code::text_after, RowStatus::wrong_shape, "\"seconds\\x0a\" after the answer", "npy"},
    {Code::comma_decimals, RowStatus::wrong_shape, "\"1,5\" has a comma", "run files stdin lines ids"},
    {Code::comma_decimals, RowStatus::wrong_shape, "\"1,5 seconds", "npy"},
    {Code::binary_garbage, RowStatus::wrong_shape, "\\xff\\x00\\xfe", kPrograms},
    {Code::flood_stdout, RowStatus::wrong_shape, "more than 1000192 bytes on stdout", kFromStdout},
    {Code::flood_stdout, RowStatus::wrong_shape, "more than 1000192 bytes in one answer", "lines ids"},
    {Code::flood_stdout, RowStatus::wrong_shape, "\"77777777", "npy"},
    {Code::flood_stdout, RowStatus::ok, "", "library files"},
    {Code::flood_stderr, RowStatus::ok, "", kAll},
    {Code::out_of_order, RowStatus::timed_out, kLate, "lines ids"},
    {Code::twice, RowStatus::wrong_shape, "more numbers after the answer", "lines ids"},
    {Code::twice, RowStatus::wrong_shape, "\"\\x93NUMPY", "npy"},
    {Code::twice, RowStatus::failed, "nrec_simulate returned 5", "library"},
    {Code::other_id, RowStatus::wrong_shape, "an answer with the number of another row", "ids"},
    {Code::fill_scratch, RowStatus::ok, "", kAll},
    {Code::delete_scratch, RowStatus::ok, "", "run stdin lines ids npy library"},
    {Code::read_stdin, RowStatus::ok, "", "run files stdin library"},
    {Code::use_memory, RowStatus::failed, "", kAll},
    {Code::refuse_in_words, RowStatus::refused, "refused: too heavy", "lines ids"},
    {Code::refuse_in_words, RowStatus::refused, "nrec_simulate returned 1", "library"},
    {Code::no_line_end, RowStatus::ok, "", "run stdin"},
    {Code::no_line_end, RowStatus::wrong_shape, "exit code 0 in the middle of an answer",
     kPersistentPrograms},
    {Code::a_line_too_many, RowStatus::wrong_shape, "more numbers after the answer", "lines ids"},
    {Code::a_line_too_many, RowStatus::wrong_shape, "\"\\x93NUMPY", "npy"},
    {Code::a_line_too_many, RowStatus::failed, "signal 6 (SIGABRT)", "library"},
    {Code::crash_at_end, RowStatus::failed, "signal 11 (SIGSEGV)", "run files stdin"},
    {Code::crash_at_end, RowStatus::failed, "signal 11 (SIGSEGV) after its input was closed", "lines"},
    {Code::crash_at_end, RowStatus::ok, "", "ids"},  // the answer has its number
    {Code::hang_at_end, RowStatus::timed_out, "it answered but went on for 1.5 s after its input was closed",
     "lines"},
};

struct Trial {
  std::string protocol;
  Case expected;
};

struct Outcome {
  std::vector<RowResult> results;
  std::vector<int> left;        // processes
  std::size_t scratch_entries;  // files and folders
  std::string error;
};

constexpr std::size_t kGuilty = 5;
constexpr std::size_t kRows = 12;

Rows trial_rows(const Case& expected) {
  std::vector<double> values;
  for (std::size_t i = 0; i < kRows; ++i) values.push_back(0.5 * static_cast<double>(i));
  values[kGuilty] = stub::first_value(expected.code);
  return Rows(values, 100);
}

Outcome run_trial(const Trial& trial) {
  Outcome outcome;
  const WorkFolder folder;
  const StubCall call{trial.protocol};
  ExternalSimulatorOptions options = call.options();
  options.scratch = folder.path() / "scratch";
  options.row_time_limit = 1.5;
  if (trial.expected.code == Code::use_memory) options.memory_limit = 300.0;
  if (trial.expected.code == Code::use_memory || trial.expected.code == Code::flood_stderr ||
      trial.expected.code == Code::flood_stdout)
    options.row_time_limit = 60.0;
  try {
    const Rows rows = trial_rows(trial.expected);
    ExternalSimulator simulator(options, {"a", "b"});
    simulator.set_x_shape({3});
    const auto runner = simulator.make_runner();
    outcome.results = run_rows(*runner, rows);
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  if (!all_gone(call.token)) outcome.left = processes_with(call.token);
  outcome.scratch_entries = 0;
  if (std::filesystem::exists(options.scratch)) {
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(options.scratch))
      ++outcome.scratch_entries;
  }
  return outcome;
}

std::vector<Trial> all_trials() {
  std::vector<Trial> trials;
  for (const Case& expected : kCases) {
    std::istringstream protocols(expected.protocols);
    for (std::string protocol; protocols >> protocol;) trials.push_back({protocol, expected});
  }
  return trials;
}

// Most trials wait for a time limit, so they run side by side, all before the first of them is judged.
const std::vector<Outcome>& all_outcomes() {
  static const std::vector<Outcome> outcomes = [] {
    const std::vector<Trial> trials = all_trials();
    std::vector<Outcome> results(trials.size());
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 20; ++i) {
      threads.emplace_back([&] {
        for (std::size_t trial = next++; trial < trials.size(); trial = next++)
          results[trial] = run_trial(trials[trial]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }();
  return outcomes;
}

class Misbehaviour : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Misbehaviour, EndsAsTheStatusOfItsRow) {
  const Trial trial = all_trials()[GetParam()];
  const Outcome& outcome = all_outcomes()[GetParam()];
  ASSERT_EQ(outcome.error, "");
  const Rows rows = trial_rows(trial.expected);
  for (std::size_t i = 0; i < kRows; ++i) {
    if (i != kGuilty) expect_right(rows, outcome.results, i);
  }
  const RowResult& guilty = outcome.results[kGuilty];
  EXPECT_EQ(row_status_name(guilty.status), row_status_name(trial.expected.status)) << guilty.reason;
  expect_in(guilty.reason, trial.expected.reason);
  if (guilty.status == RowStatus::ok) expect_right(rows, outcome.results, kGuilty);
  EXPECT_EQ(guilty.x.size(),
            guilty.status == RowStatus::ok || guilty.status == RowStatus::non_finite ? 3u : 0u);
  if (trial.expected.code == Code::exit_1) expect_in(guilty.messages, "about to leave\n");
  const bool is_interruption = trial.expected.code == Code::killed || trial.expected.code == Code::terminated;
  EXPECT_EQ(guilty.attempts, is_interruption ? 6u : 1u);
  EXPECT_EQ(outcome.left, std::vector<int>()) << "processes are left";
  EXPECT_EQ(outcome.scratch_entries, 0u) << "scratch is left";
}

std::string trial_name(const ::testing::TestParamInfo<std::size_t>& info) {
  const Trial trial = all_trials()[info.param];
  return trial.protocol + "_code" + std::to_string(trial.expected.code) + "_" + std::to_string(info.param);
}

INSTANTIATE_TEST_SUITE_P(Matrix, Misbehaviour, ::testing::Range<std::size_t>(0, all_trials().size()),
                         trial_name);

TEST(MisbehaviourMatrix, LeavesNoChildAndNoZombie) {
  all_outcomes();
  EXPECT_EQ(num_children(), 0u);
}

}  // namespace
}  // namespace nrec
