// What is refused before anything runs, names and hashes.
#include <limits>
#include <set>

#include "nrec/core/error.h"
#include "simulation/external/program_file.h"
#include "simulation/external/tests/external_fixture.h"

namespace nrec {
namespace {

ExternalSimulator make(const std::function<void(ExternalSimulatorOptions&)>& change,
                       std::vector<std::string> names = {"a", "b"}) {
  ExternalSimulatorOptions options;
  options.command = "echo {theta}";
  change(options);
  return {options, std::move(names)};
}

std::string config_error(const std::function<void(ExternalSimulatorOptions&)>& change) {
  return text_of<ConfigError>([&] { make(change); });
}

TEST(ExternalSimulator, RefusesBrokenOptionsAllAtOnce) {
  EXPECT_EQ(config_error([](auto& options) {
              options.protocol = "line";
              options.row_time_limit = -1.0;
              options.memory_limit = std::numeric_limits<double>::infinity();
              options.retries = -1;
              options.rows_per_process = -2;
              options.batch_rows = 0;
            }),
            "protocol = \"line\" is unknown; is it lines?; known are run, lines, npy\n"
            "row_time_limit = -1: must be a finite number >= 0\n"
            "memory_limit = inf: must be a finite number >= 0\n"
            "retries = -1: must be in 0 .. 1000\n"
            "rows_per_process = -2: must be >= 0\n"
            "batch_rows = 0: must be in 1 .. 1000000");
}

TEST(ExternalSimulator, IsOneOfCommandAndLibrary) {
  EXPECT_EQ(config_error([](auto& options) { options.command = ""; }),
            "simulator: neither command nor library is given; give one");
  EXPECT_EQ(config_error([](auto& options) { options.library = "x.so"; }),
            "simulator: command and library are given; a simulator is one of both");
  EXPECT_EQ(config_error([](auto& options) {
              options.command = "";
              options.library = "x.so";
              options.protocol = "npy";
            }),
            "protocol = \"npy\": a library has its own; leave it out");
}

TEST(ExternalSimulator, RefusesParametersThatAreNotHandedOver) {
  EXPECT_EQ(config_error([](auto& options) { options.command = "echo {a}"; }),
            "command: the program is not told b; add {b}, or {theta} for all values");
  EXPECT_EQ(config_error([](auto& options) {
              options.command = "cat";
              options.line = "{seed}";
            }),
            "line: the program is not told a, b; add {a}, or {theta} for all values");
  EXPECT_EQ(text_of<ConfigError>([] { make([](auto&) {}, {}); }),
            "simulator: there are no parameters; give at least one");
}

TEST(ExternalSimulator, RefusesPlaceholdersThatCannotBeFilled) {
  EXPECT_EQ(config_error([](auto& options) { options.protocol = "lines"; }),
            "command: has placeholders, but with protocol = \"lines\" the program is started once for many "
            "rows; put them "
            "into line");
  EXPECT_EQ(config_error([](auto& options) { options.protocol = "npy"; }),
            "command: has placeholders, but with protocol = \"npy\" the program is started once for many "
            "rows; it reads "
            "seeds and theta from its stdin");
  EXPECT_EQ(config_error([](auto& options) { options.command = "{theta} x"; }),
            "command: its first word, the program, cannot hold placeholders");
  EXPECT_EQ(config_error([](auto& options) { options.command = "echo {theta} {x_file} {x_file:npy}"; }),
            "command: {x_file} and {x_file:npy} are two formats of one file; use one of them");
}

TEST(ExternalSimulator, FindsProgramsOrSaysWhereItLooked) {
  const WorkFolder work;
  work.write("plain", "text");
  work.write("sim", "#!/bin/sh\n");
  std::filesystem::create_directory(work.path() / "folder");
  const auto error = [&](const std::string& command) {
    return text_of<IoError>([&] {
      make([&](auto& options) {
        options.command = command + " {theta}";
        options.folder = work.path();
      });
    });
  };
  const std::string folder = work.path().string();
  EXPECT_EQ(error("./sim"), "no exception");
  EXPECT_EQ(error("'" + folder + "/sim'"), "no exception");
  EXPECT_EQ(error("./sin"), "command: there is no program ./sin (looked for " + folder +
                                "/sin); names with a slash start from the folder of the problem file");
  EXPECT_EQ(error("./folder"), "command: " + folder + "/folder is a folder; give the program in it");
  EXPECT_EQ(error("./plain"),
            "command: " + folder +
                "/plain may not be executed; allow it (chmod +x) or name its interpreter first, for "
                "instance \"python3 ./plain\"");
  EXPECT_EQ(error("sim"), "command: there is no program sim in the folders of PATH; for the file in " +
                              folder + " write ./sim");
  EXPECT_EQ(error("no-such-program-anywhere"),
            "command: there is no program no-such-program-anywhere in the folders of PATH; install it, or "
            "give its path");
  EXPECT_EQ(text_of<IoError>([&] { make([&](auto& options) { options.folder = work.path() / "none"; }); }),
            "simulator: there is no folder " + folder + "/none");
}

TEST(ExternalSimulator, LooksThroughPathInOrder) {
  const WorkFolder work;
  std::filesystem::create_directory(work.path() / "one");
  std::filesystem::create_directory(work.path() / "two");
  work.write("one/sim", "not executable");
  work.write("two/sim", "#!/bin/sh\n");
  const std::string path = (work.path() / "one").string() + "::" + (work.path() / "two").string();
  EXPECT_EQ(simulation::find_program("sim", "/", path), work.path() / "two" / "sim");
  EXPECT_EQ(text_of<IoError>([&] { simulation::find_program("sim", "/", (work.path() / "one").string()); }),
            "command: " + (work.path() / "one" / "sim").string() +
                " may not be executed; allow it (chmod +x) or name its interpreter first, for instance "
                "\"python3 sim\"");
}

TEST(ExternalSimulator, HasANameAndAHashOfAllThatMatters) {
  const WorkFolder work;
  work.write("sim", "#!/bin/sh\necho 1\n");
  work.write("data.txt", "1");
  ExternalSimulatorOptions options;
  options.command = "./sim --data=data.txt {theta}";
  options.folder = work.path();
  const auto hash = [&](std::vector<std::string> names = {"a", "b"}) {
    return ExternalSimulator(options, std::move(names)).hash();
  };
  EXPECT_EQ(ExternalSimulator(options, {"a", "b"}).name(), "./sim --data=data.txt {theta}");
  const std::string first = hash();
  EXPECT_EQ(first.substr(0, 8), "fnv1a64:");
  EXPECT_EQ(hash(), first);
  options.retries = 5;  // changes no row
  options.row_time_limit = 7.0;
  EXPECT_EQ(hash(), first);
  std::set<std::string> hashes = {first, hash({"b", "a"})};
  work.write("data.txt", "2");
  hashes.insert(hash());
  work.write("sim", "#!/bin/sh\necho 2\n");
  hashes.insert(hash());
  options.command += " ";
  hashes.insert(hash());
  options.command = "./sim data.txt";
  options.protocol = "lines";
  hashes.insert(hash());
  options.line = "{seed} {theta}";
  hashes.insert(hash());
  EXPECT_EQ(hashes.size(), 7u);
}

TEST(ExternalSimulator, MakesNoRunnerBeforeTheShapeIsKnown) {
  ExternalSimulator simulator = make([](auto&) {});
  expect_in(text_of<InternalError>([&] { simulator.make_runner(); }),
            "runners need preflight() or set_x_shape()");
}

TEST(ExternalSimulator, SaysThatALibraryCannotBeFound) {
  const WorkFolder work;
  EXPECT_EQ(text_of<IoError>([&] {
              make([&](auto& options) {
                options.command = "";
                options.library = "libnot.so";
                options.folder = work.path();
              });
            }),
            "library: there is no file libnot.so (looked for " + work.path().string() +
                "/libnot.so); names start from the folder of the problem file");
}

}  // namespace
}  // namespace nrec
