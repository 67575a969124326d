#include "simulation/external/tests/external_fixture.h"

#include <dirent.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "nrec/core/thread_pool.h"
#include "simulation/external/descendants.h"
#include "simulation/external/tests/stubs/behaviour.h"

namespace nrec {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::string unique_token() {
  static std::atomic<int> count{0};
  return "stub-of-" + std::to_string(getpid()) + "-" + std::to_string(++count) + "-";
}

std::vector<int> processes_with(const std::string& token) {
  std::vector<int> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos || std::stoi(name) == getpid()) continue;
    if (content(entry.path() / "cmdline").find(token) != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

namespace {

template <class Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 100; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

}  // namespace

bool all_gone(const std::string& token) {
  return comes_true([&] { return processes_with(token).empty(); });
}

bool are_there(const std::string& token, std::size_t count) {
  return comes_true([&] { return processes_with(token).size() >= count; });
}

std::size_t num_children() {
  struct Count {
    pid_t self;
    std::size_t children;
  } count{getpid(), 0};
  simulation::for_each_process(
      [](const simulation::ProcessFacts& facts, void* context) {
        auto& total = *static_cast<Count*>(context);
        if (facts.parent == total.self) ++total.children;
      },
      &count);
  return count.children;
}

ExternalSimulatorOptions StubCall::options() const {
  ExternalSimulatorOptions options;
  if (protocol == "library") {
    options.library = NREC_STUB_LIBRARY;
    options.worker_program = NREC_STUB_WORKER;
    return options;
  }
  options.command = "'" NREC_STUB_SIMULATOR "' " + protocol + " " + token;
  if (protocol == "run") options.command += " {a} {b} {seed}";
  if (protocol == "files") options.command += " {theta_file} {x_file}";
  options.protocol = protocol == "lines" || protocol == "ids" ? "lines" : protocol == "npy" ? "npy" : "run";
  if (protocol == "lines") options.line = "{seed} {theta}";
  if (protocol == "ids") options.line = "{row} {seed} {a} {b}";
  return options;
}

Rows::Rows(const std::vector<double>& first_values, std::uint64_t first_row) : theta(first_values.size(), 2) {
  for (std::size_t i = 0; i < first_values.size(); ++i) {
    theta(i, 0) = first_values[i];
    theta(i, 1) = 0.1 * static_cast<double>(i) + 1.0 / 3.0;
    tasks.push_back({first_row + i, static_cast<std::uint32_t>(11 + i), std::as_const(theta).row(i)});
  }
}

std::vector<double> Rows::right_x(std::size_t i) const {
  return stub::right_x(theta(i, 0), theta(i, 1), tasks[i].seed);
}

std::vector<RowResult> run_rows(RowRunner& runner, const Rows& rows) {
  std::vector<RowResult> results(rows.tasks.size());
  std::vector<int> reports(rows.tasks.size());
  const StopRequest never;
  runner.run(
      rows.tasks,
      [&](RowResult&& result) {
        const std::size_t place = result.row - rows.tasks.front().row;
        ++reports.at(place);
        results[place] = std::move(result);
      },
      never);
  EXPECT_EQ(reports, std::vector<int>(reports.size(), 1)) << "every row is reported once";
  return results;
}

void expect_right(const Rows& rows, const std::vector<RowResult>& results, std::size_t i) {
  EXPECT_EQ(results[i].status, RowStatus::ok) << "row " << i << ": " << results[i].reason;
  EXPECT_EQ(results[i].x, rows.right_x(i)) << "row " << i;
}

WorkFolder::WorkFolder() {
  std::string pattern = (fs::temp_directory_path() / "nrec external XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no folder for the test";
  path_ = pattern;
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string WorkFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
  if (text.starts_with("#!")) fs::permissions(path_ / name, fs::perms::owner_all);
  return (path_ / name).string();
}

std::string WorkFolder::read(const std::string& name) const { return content(path_ / name); }

Matrix<double> preflight_theta(const std::vector<double>& first_values) {
  Matrix<double> theta(8, 2);
  for (std::size_t i = 0; i < 8; ++i) {
    theta(i, 0) = i < first_values.size() ? first_values[i] : 0.5 + static_cast<double>(i);
    theta(i, 1) = 0.25;
  }
  return theta;
}

PreflightReport fly(ExternalSimulator& simulator, const Matrix<double>& theta, LogSink& log,
                    const StopRequest* stop) {
  ThreadPool pool(1);
  const RunContext run{.pool = pool, .log = log, .stop = stop};
  return simulator.preflight(theta, 1, run);
}

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected: " << part << "\nin: " << text;
}

}  // namespace nrec
