#include "simulation/external/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <system_error>

#include "nrec/core/error.h"

namespace nrec::simulation {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;  // a pipe's usual capacity
// Chunks taken from one pipe in one go: a flood on one must not keep the others, and the clock, waiting.
constexpr int kMostChunks = 16;
// What a supervisor may need after the grace to kill, reap and sweep; see kSweepTime of supervisor_process.cc.
constexpr double kMostSecondsToEnd = 12.0;

[[noreturn]] void throw_no_descriptor(int code) {
  throw IoError(fmt::format(
      "simulator: no descriptor is left for the pipes of a program: {}; fewer threads or a higher "
      "limit (ulimit -n) help",
      std::generic_category().message(code)));
}

void close_one(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

// Both ends of the three pipes. Ours do not block.
struct Pipes {
  std::array<int, 3> theirs{-1, -1, -1};
  std::array<int, 3> ours{-1, -1, -1};

  explicit Pipes(ChildProcess::Input input) {
    for (int i = 0; i < 3; ++i) {
      if (i == 0 && input == ChildProcess::Input::nothing) {
        theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (theirs[0] < 0) fail();
        continue;
      }
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) fail();
      const auto place = static_cast<std::size_t>(i);
      theirs[place] = ends[i == 0 ? 0 : 1];
      ours[place] = ends[i == 0 ? 1 : 0];
      fcntl(ours[place], F_SETFL, O_NONBLOCK);
    }
  }
  [[noreturn]] void fail() {
    const int code = errno;
    for (int& descriptor : theirs) close_one(descriptor);
    for (int& descriptor : ours) close_one(descriptor);
    throw_no_descriptor(code);
  }
};

// Reads what is there; `take` gets it. False at the end of the file.
template <class Take>
bool read_available(int descriptor, Take&& take) {
  std::array<char, kChunk> chunk;
  for (int i = 0; i < kMostChunks; ++i) {
    const ssize_t count = read(descriptor, chunk.data(), chunk.size());
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count == 0) return false;
    take(std::string_view(chunk.data(), static_cast<std::size_t>(count)));
    if (static_cast<std::size_t>(count) < chunk.size()) return true;  // it was all
  }
  return true;
}

}  // namespace

SigpipeBlocked::SigpipeBlocked() {
  sigset_t pipe_signal, before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  was_blocked_ = sigismember(&before, SIGPIPE) == 1;
}

SigpipeBlocked::~SigpipeBlocked() {
  if (was_blocked_) return;
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  const timespec no_time{};
  while (sigtimedwait(&pipe_signal, nullptr, &no_time) == SIGPIPE) {
  }
  pthread_sigmask(SIG_UNBLOCK, &pipe_signal, nullptr);
}

ChildProcess::ChildProcess(Supervisor& supervisor, const LaunchPlan& plan, Input input)
    : supervisor_(supervisor) {
  Pipes pipes(input);
  in_ = pipes.ours[0];
  out_ = pipes.ours[1];
  err_ = pipes.ours[2];
  supervisor_.start(plan, {pipes.theirs[0], pipes.theirs[1], pipes.theirs[2]});
  for (int& descriptor : pipes.theirs) close_one(descriptor);
}

ChildProcess::~ChildProcess() {
  if (!is_over()) end(0.0);
  close_all();
}

void ChildProcess::pump(double seconds) {
  if (in_ >= 0 && unsent() == 0 && closes_input_) close_one(in_);
  std::array<pollfd, 4> events{{{unsent() > 0 ? in_ : -1, POLLOUT, 0},
                                {out_, POLLIN, 0},
                                {err_, POLLIN, 0},
                                {is_over() ? -1 : supervisor_.descriptor(), POLLIN, 0}}};
  const double milliseconds = std::ceil(std::clamp(seconds, 0.0, 1e6) * 1000);
  if (poll(events.data(), events.size(), static_cast<int>(milliseconds)) <= 0) return;
  // Reports last: what a program wrote before it ended is then read before its end is known.
  if (events[0].revents != 0) write_input();
  if (events[1].revents != 0) read_output();
  if (events[2].revents != 0) read_messages();
  if (events[3].revents != 0) read_reports();
}

void ChildProcess::write_input() {
  while (unsent() > 0) {
    const ssize_t count = write(in_, input_.data() + written_, unsent());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) {  // nobody reads any more; whether that is wrong is seen by what comes back
      close_one(in_);
      break;
    }
    written_ += static_cast<std::size_t>(count);
  }
  input_.clear();
  written_ = 0;
  if (closes_input_) close_one(in_);
}

void ChildProcess::read_output() {
  const bool goes_on = read_available(out_, [this](std::string_view bytes) {
    const std::size_t room = output_limit_ - std::min(output_limit_, output_.size());
    if (bytes.size() > room) overflowed_ = true;
    output_ += bytes.substr(0, room);
  });
  if (!goes_on) close_one(out_);
}

void ChildProcess::read_messages() {
  if (!read_available(err_, [this](std::string_view bytes) { messages_.add(bytes); })) close_one(err_);
}

void ChildProcess::read_reports() {
  const std::optional<Report> report = supervisor_.next_report();
  if (!report) {
    if (!supervisor_.is_lost()) return;
    // The program dies with its supervisor; the rest of its group is ended from here.
    if (process_ > 0) kill(-process_, SIGKILL);
    state_ = State::lost;
  } else if (report->kind == Report::Kind::started) {
    process_ = report->value;
    state_ = State::running;
    return;
  } else {
    status_ = report->value;
    stage_ = report->stage;
    if (report->is_stuck != 0) supervisor_.give_up();
    state_ = report->kind == Report::Kind::ended ? State::ended : State::not_started;
  }
  drain_and_close();
}

// Everybody who could write is gone, so what is in the pipes is all there will be.
void ChildProcess::drain_and_close() {
  for (std::size_t before = 0; out_ >= 0; before = output_.size()) {
    read_output();
    pollfd event{out_, POLLIN, 0};
    if (out_ >= 0 && (poll(&event, 1, 0) <= 0 || (event.revents & POLLIN) == 0)) break;
    if (output_.size() == before && overflowed_) break;  // a stranger holds the pipe and goes on writing
  }
  if (err_ >= 0) read_messages();
  close_all();
}

void ChildProcess::close_all() {
  close_one(in_);
  close_one(out_);
  close_one(err_);
}

void ChildProcess::end(double grace_seconds) {
  if (is_over()) return;
  ended_by_us_ = true;
  supervisor_.end(grace_seconds);
  const Stopwatch waiting;
  constexpr double kPoll = 0.1;
  while (!is_over()) {
    if (waiting.seconds() > grace_seconds + kMostSecondsToEnd || supervisor_.is_lost()) {
      supervisor_.give_up();
      if (process_ > 0) kill(-process_, SIGKILL);
      state_ = State::lost;
      close_all();
      return;
    }
    output_limit_ = output_.size();  // nobody will read on
    pump(kPoll);
  }
}

}  // namespace nrec::simulation
