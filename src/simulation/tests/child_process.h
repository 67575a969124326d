#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <string>

#include "nrec/core/error.h"

namespace nrec::simulation {

// A forked copy of this process that does one piece of work and ends; what it writes into the pipe can be read here.
class ChildProcess {
 public:
  // `work` is given the writing end of the pipe.
  explicit ChildProcess(const std::function<void(int)>& work) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    process_ = ::fork();
    if (process_ == 0) {
      ::close(ends[0]);
      int code = 0;
      try {
        work(ends[1]);
      } catch (const std::exception& error) {
        send(ends[1], error.what());
        code = 1;
      }
      ::_exit(code);  // no destructors, no exit handlers of the test program
    }
    ::close(ends[1]);
    pipe_ = ends[0];
  }
  ~ChildProcess() {
    kill();
    ::close(pipe_);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  static void send(int pipe, const std::string& text) {
    EXPECT_EQ(::write(pipe, text.data(), text.size()), static_cast<::ssize_t>(text.size()));
  }

  // Reads exactly so many bytes; fewer when the child has ended.
  std::string receive(std::size_t size) {
    std::string text(size, '\0');
    std::size_t done = 0;
    for (::ssize_t count = 1; done < size && count > 0; done += static_cast<std::size_t>(count)) {
      count = ::read(pipe_, text.data() + done, size - done);
      if (count < 0) count = 0;
    }
    text.resize(done);
    return text;
  }
  // Everything until the child ends.
  std::string receive_all() {
    std::string text;
    for (std::string piece = receive(4096); !piece.empty(); piece = receive(4096)) text += piece;
    return text;
  }

  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  ::pid_t process_ = 0;
  int pipe_ = -1;
};

// Text that `work` returns, or that of the exception that it throws, from a process of its own.
inline std::string in_child(const std::function<std::string()>& work) {
  return ChildProcess([&](int pipe) { ChildProcess::send(pipe, work()); }).receive_all();
}

// For children only: gives up the rights of root, who may write everywhere.
inline void become_nobody() {
  constexpr ::uid_t kNobody = 65534;
  if (::getuid() != 0) return;
  if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)
    throw IoError("the rights of root cannot be given up");
}

}  // namespace nrec::simulation
