#include "experiments/run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "nrec/core/error.h"

extern char** environ;

namespace nrec {

namespace {

constexpr std::chrono::milliseconds kBetweenLooks(20);
constexpr std::size_t kMostErrorText = 300;

/// File that has no name and goes with its last descriptor.
class UnnamedFile {
 public:
  UnnamedFile() : file_(std::tmpfile(), &std::fclose) {
    if (!file_) throw IoError(std::string("a temporary file cannot be made: ") + std::strerror(errno));
  }
  int descriptor() const { return fileno(file_.get()); }
  std::string first_line() const {
    char text[kMostErrorText] = {};
    const ssize_t size = pread(descriptor(), text, sizeof text - 1, 0);
    std::string all(text, size > 0 ? static_cast<std::size_t>(size) : 0);
    all.erase(0, std::min(all.find_first_not_of(" \n"), all.size()));
    return all.substr(0, all.find('\n'));
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

/// Where the standard streams of the program go.
class Streams {
 public:
  Streams(const std::filesystem::path& folder, int error_text) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, error_text, 2);
    posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
  }
  ~Streams() { posix_spawn_file_actions_destroy(&actions_); }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

ProgramEnd run_program(const std::vector<std::string>& words, const std::filesystem::path& folder,
                       double time_limit, const StopRequest* stop) {
  const UnnamedFile errors;
  const Streams streams(folder, errors.descriptor());
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ProgramEnd end;
  pid_t process = 0;
  const int code = posix_spawnp(&process, arguments[0], streams.get(), nullptr, arguments.data(), environ);
  if (code == ENOENT || code == EACCES) return end;
  if (code != 0) throw IoError(words[0] + ": cannot be started: " + std::strerror(code));
  end.started = true;
  const Stopwatch watch;
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (!end.timed_out && (watch.seconds() > time_limit || (stop && stop->requested()))) {
      end.timed_out = true;
      kill(process, SIGKILL);
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  end.error_text = errors.first_line();
  return end;
}

}  // namespace nrec
