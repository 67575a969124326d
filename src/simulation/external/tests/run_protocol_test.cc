// protocol = "run": a program per row.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "nrec/core/error.h"
#include "nrec/io/npy.h"
#include "simulation/external/tests/external_fixture.h"
#include "simulation/external/tests/stubs/behaviour.h"

namespace nrec {
namespace {

// A script in a folder of its own, called as a user would.
struct Script {
  WorkFolder folder;
  ExternalSimulatorOptions options;

  Script(const std::string& text, const std::string& words) {
    folder.write("sim.sh", "#!/bin/sh\n" + text);
    options.command = "./sim.sh " + words;
    options.protocol = "run";
    options.folder = folder.path();
    options.scratch = folder.path() / "scratch";
    options.row_time_limit = 60.0;
  }
  std::vector<RowResult> run(const Rows& rows, std::vector<std::size_t> x_shape) {
    ExternalSimulator simulator(options, {"a", "b"});
    simulator.set_x_shape(std::move(x_shape));
    return run_rows(*simulator.make_runner(), rows);
  }
};

TEST(RunProtocol, CallsTheProgramWithTheRowsValues) {
  Script script(
      "cat beside.txt >/dev/null || exit 1\n"
      "test \"$TMPDIR\" = \"$NREC_SCRATCH\" && test -d \"$TMPDIR\" && test -z \"$(ls -A \"$TMPDIR\")\" || "
      "exit 2\n"
      "echo $1 $2 $3 $4 $NREC_SEED $NREC_ROW $NREC_DIM_THETA",
      "{a} '{b}' {seed} {row}");
  script.folder.write("beside.txt", "data");
  const Rows rows({1.5, 2.5}, 40);
  const std::vector<RowResult> results = script.run(rows, {7});
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(results[i].reason, "");
    const double seed = rows.tasks[i].seed, row = 40.0 + static_cast<double>(i);
    EXPECT_EQ(results[i].x,
              (std::vector<double>{rows.theta(i, 0), rows.theta(i, 1), seed, row, seed, row, 2.0}));
    EXPECT_GT(results[i].seconds, 0.0);
  }
}

TEST(RunProtocol, WritesThetaToStdinWhenTheCommandDoesNotHoldIt) {
  Script script("read a b; read more && exit 1; echo $b $a $1", "{seed}");
  const Rows rows({1.5});
  EXPECT_EQ(script.run(rows, {3})[0].x, (std::vector<double>{rows.theta(0, 1), 1.5, 11.0}));
}

TEST(RunProtocol, GivesAnEmptyStdinOtherwise) {
  Script script("cat; echo $1 $2", "{a} {b}");
  const Rows rows({1.5});
  EXPECT_EQ(script.run(rows, {2})[0].status, RowStatus::ok);
}

TEST(RunProtocol, HandsOverFilesAsTextAndAsArrays) {
  Script text("read a b < \"$1\"; echo $b > \"$2\"; echo $a >> \"$2\"; echo noise", "{theta_file} {x_file}");
  const Rows rows({1.5});
  EXPECT_EQ(text.run(rows, {2})[0].x, (std::vector<double>{rows.theta(0, 1), 1.5}));

  Script arrays("cp \"$1\" theta.npy; cp x.npy \"${2#--out=}\"", "{theta_file:npy} --out={x_file:npy}");
  write_npy(arrays.folder.path() / "x.npy", NumericArray{{2, 3}, {1, 2, 3, 4, 5, 6}});
  EXPECT_EQ(arrays.run(rows, {2, 3})[0].x, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  const NumericArray theta = read_npy(arrays.folder.path() / "theta.npy");
  EXPECT_EQ(theta.shape, std::vector<std::size_t>{2});
  EXPECT_EQ(theta.values, (std::vector<double>{1.5, rows.theta(0, 1)}));

  const RowResult wrong = arrays.run(rows, {6})[0];
  EXPECT_EQ(wrong.status, RowStatus::wrong_shape);
  EXPECT_EQ(wrong.reason, "an array of shape (2, 3), (6,) expected");
}

TEST(RunProtocol, TakesAnArrayFromStdout) {
  Script script("cat x.npy", "{theta}");
  const Rows rows({1.5});
  write_npy(script.folder.path() / "x.npy", NumericArray{{3}, {1, 2, 3}, "<f4"});
  EXPECT_EQ(script.run(rows, {3})[0].x, (std::vector<double>{1, 2, 3}));
  const std::string bytes = script.folder.read("x.npy");
  script.folder.write("x.npy", bytes.substr(0, bytes.size() - 1));
  const RowResult cut = script.run(rows, {3})[0];
  EXPECT_EQ(cut.status, RowStatus::wrong_shape);
  expect_in(cut.reason, "x: shape (3,) of type \"<f4\" needs 12 bytes of data but the file holds 11");
}

TEST(RunProtocol, HintsAtNamesThatNumpyChanges) {
  Script script("cp x.npy \"$1.npy\"", "{x_file}");
  write_npy(script.folder.path() / "x.npy", NumericArray{{3}, {1, 2, 3}});
  EXPECT_EQ(script.run(Rows({1.5}), {3})[0].reason,
            "no file {x_file}, but one with .npy behind its name: use {x_file:npy}");
}

TEST(RunProtocol, ReasonsOfEqualFailuresAreEqual) {
  Script script("mkdir \"$1\"", "{x_file}");
  const std::vector<RowResult> results = script.run(Rows({1.5, 2.5}), {3});
  EXPECT_EQ(results[0].reason, results[1].reason);
  EXPECT_EQ(results[0].status, RowStatus::wrong_shape);
  EXPECT_EQ(results[0].reason.substr(0, 17), "the file {x_file}");
}

TEST(RunProtocol, RepeatsFailedRowsAsOftenAsAsked) {
  const std::string text =
      "echo x >> count; test $(wc -l < count) -ge 3 || { echo no >&2; exit 4; }; echo 1 $NREC_SEED";
  Script enough(text, "{theta}");
  enough.options.retries = 2;
  const RowResult good = enough.run(Rows({1.5}), {2})[0];
  EXPECT_EQ(good.status, RowStatus::ok);
  EXPECT_EQ(good.attempts, 3u);
  EXPECT_EQ(good.x, (std::vector<double>{1.0, 11.0})) << "with the same seed";
  EXPECT_EQ(good.messages, "");

  Script too_few(text, "{theta}");
  too_few.options.retries = 1;
  const RowResult bad = too_few.run(Rows({1.5}), {2})[0];
  EXPECT_EQ(bad.status, RowStatus::failed);
  EXPECT_EQ(bad.reason, "exit code 4");
  EXPECT_EQ(bad.attempts, 2u);
  EXPECT_EQ(bad.messages, "no\n");
}

TEST(RunProtocol, DoesNotRepeatRefusalsAndNonFiniteRows) {
  Script refusal("exit 77", "{theta}");
  refusal.options.retries = 3;
  EXPECT_EQ(refusal.run(Rows({1.5}), {2})[0].attempts, 1u);
  Script nan("echo nan 1", "{theta}");
  nan.options.retries = 3;
  EXPECT_EQ(nan.run(Rows({1.5}), {2})[0].attempts, 1u);
}

TEST(RunProtocol, RepeatsInterruptedRowsBesideTheRetries) {
  Script script("echo x >> count; test $(wc -l < count) -ge 5 || kill -9 $$; echo 1 2", "{theta}");
  const RowResult result = script.run(Rows({1.5}), {2})[0];
  EXPECT_EQ(result.status, RowStatus::ok) << result.reason;
  EXPECT_EQ(result.attempts, 5u);
}

TEST(RunProtocol, EndsTheCampaignWhenTheProgramIsGone) {
  Script script("echo 1 2", "{theta}");
  ExternalSimulator simulator(script.options, {"a", "b"});
  simulator.set_x_shape({2});
  const auto runner = simulator.make_runner();
  EXPECT_EQ(run_rows(*runner, Rows({1.5}))[0].status, RowStatus::ok);
  std::filesystem::remove(script.folder.path() / "sim.sh");
  const Rows rows({1.5});
  EXPECT_EQ(text_of<IoError>([&] {
              runner->run(
                  rows.tasks, [](RowResult&&) {}, StopRequest());
            }),
            "simulator: " + (script.folder.path() / "sim.sh").string() +
                " cannot be executed: No such file or directory");
}

TEST(RunProtocol, WaitsForAProgramThatIsBeingWritten) {
  Script script("", "{theta}");
  std::filesystem::copy_file("/bin/echo", script.folder.path() / "echo");
  script.options.command = "./echo {theta}";
  const int writing = open((script.folder.path() / "echo").c_str(), O_WRONLY | O_CLOEXEC);
  std::thread writer([writing] {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    close(writing);
  });
  const Rows rows({1.5});
  EXPECT_EQ(script.run(rows, {2})[0].x, (std::vector<double>{1.5, rows.theta(0, 1)}));
  writer.join();
}

TEST(RunProtocol, SaysThatTheCommandLineIsTooLong) {
  ExternalSimulatorOptions options;
  options.command = "echo {theta}";
  std::vector<std::string> names;
  for (int i = 0; i < 20000; ++i) names.push_back("p" + std::to_string(i));
  ExternalSimulator simulator(options, names);
  simulator.set_x_shape({1});
  const std::vector<double> theta(names.size(), 1.0 / 3.0);
  const RowTask task{0, 1, theta};
  EXPECT_EQ(text_of<IoError>([&] {
              simulator.make_runner()->run(
                  std::span(&task, 1), [](RowResult&&) {}, StopRequest());
            }),
            "simulator: /usr/bin/echo cannot be executed: Argument list too long; the command line is too "
            "long, hand theta "
            "over in a file: {theta_file}");
}

TEST(RunProtocol, TakesTheSimplestCommand) {
  ExternalSimulatorOptions options;
  options.command = "echo {theta}";
  ExternalSimulator simulator(options, {"a", "b"});
  simulator.set_x_shape({2});
  const Rows rows({1e-7, -2.5e300});
  const std::vector<RowResult> results = run_rows(*simulator.make_runner(), rows);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(results[i].x, (std::vector<double>{rows.theta(i, 0), rows.theta(i, 1)}));
}

}  // namespace
}  // namespace nrec
