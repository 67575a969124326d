#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/log_sink.h"
#include "nrec/core/stop.h"
#include "nrec/simulation/external_simulator.h"

namespace nrec {

// A word that only the processes of one test have on their command lines.
std::string unique_token();
// Living processes with this word on their command line.
std::vector<int> processes_with(const std::string& token);
// The same, waiting up to some seconds for them to go.
bool all_gone(const std::string& token);
// At least so many processes with `token`; waits, as one that replaces itself has no name for a moment.
bool are_there(const std::string& token, std::size_t count);
// Children of this process that have ended and were not reaped, and those that live.
std::size_t num_children();

// How a stub simulator is called by one of "run", "files", "stdin", "lines", "ids", "npy", "library".
struct StubCall {
  std::string protocol;
  std::string token = unique_token();
  ExternalSimulatorOptions options() const;
};

// Rows for a runner: theta (a, b) with seeds 11, 12, ...
struct Rows {
  Matrix<double> theta;
  std::vector<RowTask> tasks;
  explicit Rows(const std::vector<double>& first_values, std::uint64_t first_row = 0);
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  std::vector<double> right_x(std::size_t i) const;
};

// Runs rows and gives the results in the order of their numbers; every row must be reported exactly once.
std::vector<RowResult> run_rows(RowRunner& runner, const Rows& rows);

// Whether row i is ok with the x that belongs to it.
void expect_right(const Rows& rows, const std::vector<RowResult>& results, std::size_t i);

// A fresh folder with a blank in its name, removed with the object.
class WorkFolder {
 public:
  WorkFolder();
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  // Writes a file, executable when it starts with "#!".
  std::string write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;

 private:
  std::filesystem::path path_;
};

class NotedLog final : public LogSink {
 public:
  void info(std::string_view text) override { infos.emplace_back(text); }
  void warning(std::string_view text) override { warnings.emplace_back(text); }
  std::vector<std::string> infos, warnings;
};

// Thetas of pre-flight runs: eight rows that start with these values.
Matrix<double> preflight_theta(const std::vector<double>& first_values);
PreflightReport fly(ExternalSimulator& simulator, const Matrix<double>& theta, LogSink& log = silent_sink(),
                    const StopRequest* stop = nullptr);

// Text of the E that `action` throws; other exceptions and none give a text that no test expects.
template <class E>
std::string text_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another exception: ") + error.what();
  }
  return "no exception";
}

void expect_in(const std::string& text, const std::string& part);

}  // namespace nrec
