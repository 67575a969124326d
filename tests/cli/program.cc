#include "program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace nrec::cli {

namespace fs = std::filesystem;

namespace {

std::string file_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::string Outcome::last_line() const {
  const std::size_t end = err.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t start = err.rfind('\n', end);
  return err.substr(start == std::string::npos ? 0 : start + 1,
                    end - (start == std::string::npos ? 0 : start + 1) + 1);
}

RunningProgram::RunningProgram(const fs::path& folder, const Words& words, const Environment& environment) {
  static int number = 0;
  const std::string name = ".run_" + std::to_string(++number);
  out_ = folder / (name + ".out");
  err_ = folder / (name + ".err");
  std::vector<char*> arguments = {const_cast<char*>("nrec")};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  process_ = fork();
  if (process_ != 0) return;
  const auto redirect = [](const fs::path& path, int to) {
    const int from = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (from < 0 || dup2(from, to) < 0) _exit(99);
  };
  redirect(out_, STDOUT_FILENO);
  redirect(err_, STDERR_FILENO);
  if (chdir(folder.c_str()) != 0) _exit(99);
  unsetenv("NREC_ISA");
  for (const auto& [variable, value] : environment) setenv(variable.c_str(), value.c_str(), 1);
  execv(NREC_PROGRAM, arguments.data());
  _exit(99);
}

void RunningProgram::send(int signal) const { kill(process_, signal); }

Outcome RunningProgram::wait() {
  int status = 0;
  waitpid(process_, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), file_text(out_), file_text(err_)};
}

void ProgramTest::SetUp() {
  std::string pattern = (fs::temp_directory_path() / "nrec_cli_XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
}

void ProgramTest::TearDown() { fs::remove_all(folder_); }

Outcome ProgramTest::run(const Words& words, const Environment& environment) const {
  return RunningProgram(folder_, words, environment).wait();
}

RunningProgram ProgramTest::start(const Words& words) const { return RunningProgram(folder_, words, {}); }

void ProgramTest::write(const std::string& name, const std::string& text) const {
  fs::create_directories((folder_ / name).parent_path());
  std::ofstream(folder_ / name, std::ios::binary) << text;
}

std::string ProgramTest::content(const std::string& name) const {
  EXPECT_TRUE(exists(name)) << name;
  return file_text(folder_ / name);
}

bool ProgramTest::exists(const std::string& name) const { return fs::exists(folder_ / name); }

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected: " << part << "\nin: " << text;
}

}  // namespace nrec::cli
