// What the pre-flight runs find out, and what they refuse.
#include <thread>

#include "nrec/core/error.h"
#include "nrec/io/npy.h"
#include "simulation/external/tests/external_fixture.h"
#include "simulation/external/tests/stubs/behaviour.h"

namespace nrec {
namespace {

std::vector<double> always(stub::Code code) { return std::vector<double>(8, stub::first_value(code)); }

// What refuses the stub with this behaviour in every row.
std::string refusal(const std::string& protocol, stub::Code code, double limit = 0.0) {
  const StubCall call{protocol};
  ExternalSimulatorOptions options = call.options();
  options.row_time_limit = limit;
  ExternalSimulator simulator(options, {"a", "b"});
  const std::string text = text_of<ConfigError>([&] { fly(simulator, preflight_theta(always(code))); });
  EXPECT_TRUE(all_gone(call.token));
  return text;
}

struct Script {
  WorkFolder folder;
  ExternalSimulatorOptions options;

  explicit Script(const std::string& text, const std::string& words = "") {
    folder.write("sim.sh", text);
    options.command = "./sim.sh " + words;
    options.folder = folder.path();
  }
  PreflightReport fly_it(LogSink& log = silent_sink()) {
    ExternalSimulator simulator(options, {"a", "b"});
    return fly(simulator, preflight_theta({}), log);
  }
  std::string refusal() {
    return text_of<Error>([&] { fly_it(); });
  }
};

class PreflightOf : public ::testing::TestWithParam<const char*> {};

TEST_P(PreflightOf, AGoodSimulatorFindsNothingWrong) {
  ExternalSimulator simulator(StubCall{GetParam()}.options(), {"a", "b"});
  const PreflightReport report = fly(simulator, preflight_theta({}));
  EXPECT_EQ(report.x_shape, std::vector<std::size_t>{3});
  EXPECT_TRUE(report.is_reproducible);
  EXPECT_TRUE(report.seed_has_effect);
  EXPECT_EQ(report.warnings, std::vector<std::string>());
  EXPECT_EQ(report.row_time_limit, 60.0);
  EXPECT_GE(report.seconds_per_row, 0.0);
  EXPECT_LT(report.seconds_per_row, 5.0);
  EXPECT_GE(report.rows_per_call, 1u);
  const Rows rows({1.5});
  expect_right(rows, run_rows(*simulator.make_runner(), rows), 0);
}

TEST_P(PreflightOf, ASimulatorThatSometimesFailsGoesOnWithTheNextRow) {
  ExternalSimulator simulator(StubCall{GetParam()}.options(), {"a", "b"});
  const PreflightReport report =
      fly(simulator, preflight_theta({stub::first_value(stub::exit_1), stub::first_value(stub::nan_value)}));
  EXPECT_EQ(report.x_shape, std::vector<std::size_t>{3});
  EXPECT_EQ(report.warnings, std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Protocols, PreflightOf,
                         ::testing::Values("run", "files", "stdin", "lines", "ids", "npy", "library"),
                         [](const auto& protocol) { return std::string(protocol.param); });

TEST(Preflight, RefusesWithReasonsMessagesAndTheCommand) {
  const std::string text = refusal("run", stub::exit_1);
  expect_in(
      text,
      ": none of 8 pre-flight runs gave an x.\n  8 x failed: exit code 1\nThe first theta was 1001 0.25. "
      "It said on stderr:\nabout to leave\nTry by hand, in ");
  expect_in(text, " 1001 0.25 ");
  expect_in(refusal("lines", stub::exit_1), "Try by hand, in ");
  expect_in(refusal("lines", stub::exit_1), ": echo \"");
}

TEST(Preflight, RefusesEveryWayOfFailing) {
  expect_in(refusal("run", stub::segmentation_fault), "8 x failed: signal 11 (SIGSEGV)");
  expect_in(refusal("ids", stub::killed), "8 x failed: signal 9 (SIGKILL)");
  expect_in(refusal("stdin", stub::text_before), "8 x wrong shape: text \"mass=\" after 0 numbers");
  expect_in(refusal("lines", stub::comma_decimals), "\"1,5\" has a comma");
  expect_in(refusal("run", stub::nan_value), "8 x non-finite: x[1] = nan");
  expect_in(refusal("npy", stub::no_line_end), "8 x wrong shape: exit code 0 in the middle of an answer");
  expect_in(refusal("library", stub::refuse_in_words), "8 x refused: nrec_simulate returned 1");
  expect_in(refusal("lines", stub::twice), "8 x wrong shape: more numbers after the answer");
  expect_in(refusal("ids", stub::other_id), "8 x wrong shape: an answer with the number of another row");
}

TEST(Preflight, GivesUpAProgramThatHangsAfterTwoRows) {
  expect_in(refusal("run", stub::hang, 0.3),
            "none of 2 pre-flight runs gave an x.\n  2 x timed out: no end after 0.3 s");
}

TEST(Preflight, RefusesAnswersOutOfOrder) {
  // The row alone is answered; of three at once the first two change places.
  Script script(
      "#!/bin/sh\nn=0\nwhile read row rest; do n=$((n+1))\n"
      "case $n in 1) kept=\"$row $rest\"; [ $row -lt 8 ] && echo $kept;; 2) echo $row $rest; echo $kept;; "
      "*) echo $row $rest;; esac; done\n");
  script.options.line = "{row} {theta}";
  expect_in(script.refusal(),
            "alone each row is answered, but not three requests in a row: an answer with the number of "
            "another row");
}

TEST(Preflight, RefusesAProgramThatEndsAfterARow) {
  Script script("#!/bin/sh\nread a b; echo $a $b");
  expect_in(script.refusal(),
            "it ends before it has answered all requests; let it go on until its input ends, or start it "
            "once per row with protocol = \"run\"");
}

TEST(Preflight, WarnsOfRowsThatCannotBeMadeAgain) {
  Script script("#!/bin/sh\ndate +%s%N", "{a} {b}");
  const PreflightReport report = script.fly_it();
  EXPECT_FALSE(report.is_reproducible);
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_EQ(report.warnings[0],
            "the simulator gave different x for the same theta and seed, so rows cannot be made again; take "
            "all randomness "
            "of a row from its seed: {seed} in the command, or NREC_SEED in its environment");
}

TEST(Preflight, WarnsOfStateThatGoesFromRowToRow) {
  // Alike whenever it is started, but not from row to row: a generator seeded once.
  Script script("#!/bin/sh\nn=0; while read a b; do n=$((n+1)); echo $n; done");
  EXPECT_FALSE(script.fly_it().is_reproducible);
}

TEST(Preflight, WarnsOfSeedsWithoutEffect) {
  Script script("#!/bin/sh\necho $1", "{a} {b} {seed}");
  const PreflightReport report = script.fly_it();
  EXPECT_TRUE(report.is_reproducible);
  EXPECT_FALSE(report.seed_has_effect);
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_EQ(report.warnings[0],
            "the simulator gave the same x for another seed; if it is meant to be random, give it the seed: "
            "{seed} in the "
            "command, or NREC_SEED in its environment");
}

TEST(Preflight, FindsTheShapeOfAnArray) {
  Script script("#!/bin/sh\ncat x.npy", "{theta}");
  write_npy(script.folder.path() / "x.npy", NumericArray{{2, 1, 3}, {1, 2, 3, 4, 5, 6}});
  EXPECT_EQ(script.fly_it().x_shape, (std::vector<std::size_t>{2, 1, 3}));
  write_npy(script.folder.path() / "x.npy", NumericArray{{}, {7}});
  EXPECT_EQ(script.fly_it().x_shape, std::vector<std::size_t>{1}) << "a single number is an x of one value";
}

TEST(Preflight, ReadsAnXOfMegabytes) {
  Script script("#!/bin/sh\nseq 1 1000000", "{theta}");
  EXPECT_EQ(script.fly_it().x_shape, std::vector<std::size_t>{1000000});
}

TEST(Preflight, SaysWhyAProgramCannotBeExecuted) {
  Script no_interpreter("#!/usr/bin/not-there -x\n", "{theta}");
  EXPECT_EQ(no_interpreter.refusal(),
            "simulator: " + (no_interpreter.folder.path() / "sim.sh").string() +
                " cannot be executed: No such file or directory; its first line names "
                "/usr/bin/not-there, which is not there");
  Script no_first_line("echo 1", "{theta}");
  std::filesystem::permissions(no_first_line.folder.path() / "sim.sh", std::filesystem::perms::owner_all);
  expect_in(no_first_line.refusal(),
            "Exec format error; it is no program of this system; a script needs a first line such "
            "as #!/bin/sh");
}

TEST(Preflight, QuotesTheLoaderWhenALibraryIsMissing) {
  const WorkFolder folder;
  std::filesystem::copy_file(NREC_STUB_WITHOUT_LIBRARY, folder.path() / "sim");
  ExternalSimulatorOptions options;
  options.command = "./sim {theta}";
  options.folder = folder.path();
  ExternalSimulator simulator(options, {"a", "b"});
  const std::string text = text_of<ConfigError>([&] { fly(simulator, preflight_theta({})); });
  expect_in(text, "8 x failed: exit code 127");
  expect_in(text,
            "error while loading shared libraries: libstub_dependency.so: cannot open shared object file");
}

TEST(Preflight, NeedsEightThetasOfTheRightWidth) {
  ExternalSimulatorOptions options;
  options.command = "echo {theta}";
  ExternalSimulator simulator(options, {"a", "b"});
  EXPECT_EQ(text_of<ShapeError>([&] { fly(simulator, Matrix<double>(7, 2)); }),
            "simulator: the pre-flight runs need theta [8 or more, 2], not [7, 2]");
  EXPECT_EQ(text_of<ShapeError>([&] { fly(simulator, Matrix<double>(8, 3)); }),
            "simulator: the pre-flight runs need theta [8 or more, 2], not [8, 3]");
}

// Three that take long, side by side.
TEST(PreflightPatience, TellsThatItWaitsStopsAndFindsBuffers) {
  std::thread waiting([] {
    const StubCall call{"run"};
    ExternalSimulator simulator(call.options(), {"a", "b"});
    struct StopAtWords final : LogSink {
      StopRequest stop;
      std::string words;
      void info(std::string_view text) override {
        words = text;
        stop.request(15);
      }
    } log;
    const Stopwatch watch;
    const PreflightReport report = fly(simulator, preflight_theta(always(stub::hang)), log, &log.stop);
    EXPECT_LT(watch.seconds(), 20.0);
    EXPECT_TRUE(report.x_shape.empty());
    EXPECT_EQ(log.words.substr(0, 46), "simulator: still waiting for the first run (10");
    EXPECT_TRUE(all_gone(call.token));
  });
  std::thread buffered([] {
    Script script(
        "#!/bin/sh\nanswers=; while read a b; do answers=\"$answers$a $b\n\"; done; printf '%s' "
        "\"$answers\"");
    expect_in(script.refusal(),
              "its answers come only when its input ends, because they stay in a buffer; flush stdout "
              "after every answer");
  });
  std::thread slow([] {
    // Slower than the patience with a buffer: taken for what it is.
    Script script("#!/bin/sh\nsleep 6; while read a b; do echo $a $b; done");
    EXPECT_EQ(script.fly_it().x_shape, std::vector<std::size_t>{2});
  });
  waiting.join();
  buffered.join();
  slow.join();
}

}  // namespace
}  // namespace nrec
