#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace nrec::cli {

/// How a run of the program ended.
struct Outcome {
  int code = -1;  // exit code, or 128 + signal when a signal ended it
  std::string out, err;

  /// Last line of stderr.
  std::string last_line() const;
};

using Words = std::vector<std::string>;
using Environment = std::vector<std::pair<std::string, std::string>>;

/// The built program, running.
class RunningProgram {
 public:
  RunningProgram(const std::filesystem::path& folder, const Words& words, const Environment& environment);
  void send(int signal) const;
  Outcome wait();

 private:
  std::filesystem::path out_, err_;
  pid_t process_;
};

/// Every test works in a fresh folder, which is the program's current one.
class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  Outcome run(const Words& words, const Environment& environment = {}) const;
  RunningProgram start(const Words& words) const;
  /// Writes a text file into the folder.
  void write(const std::string& name, const std::string& text) const;
  /// Content of a file of the folder; fails the test when it is not there.
  std::string content(const std::string& name) const;
  bool exists(const std::string& name) const;

  std::filesystem::path folder_;
};

/// Fails the test when `text` does not contain `part`.
void expect_in(const std::string& text, const std::string& part);

}  // namespace nrec::cli
