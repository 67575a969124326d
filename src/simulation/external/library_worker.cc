#include "nrec/simulation/library_worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include "nrec/core/error.h"
#include "nrec/core/stop.h"
#include "simulation/external/library_records.h"
#include "simulation/external/shared_library.h"

namespace nrec {
namespace simulation {
namespace {

// Answers of fast rows go in one write; nobody waits longer for one.
constexpr double kLongestDelay = 200e-6;
constexpr std::size_t kMostPending = 32768;
// Descriptors of ours lie where a library that opens or closes small numbers does not meet them.
constexpr int kFirstOwnDescriptor = 100;

// Answers not yet written. Also used by the handlers of a dying process, so it is one object without a destructor.
struct PendingAnswers {
  int out = -1;
  volatile std::size_t size = 0;
  std::array<char, 2 * kMostPending> bytes;

  bool flush() noexcept {
    const char* place = bytes.data();
    std::size_t left = size;
    size = 0;
    while (left > 0) {
      const ssize_t count = write(out, place, left);
      if (count < 0 && errno != EINTR) return false;
      if (count < 0) continue;
      place += count;
      left -= static_cast<std::size_t>(count);
    }
    return true;
  }
  void add(const void* data, std::size_t count) noexcept {
    std::memcpy(bytes.data() + size, data, count);
    size = size + count;
  }
};
PendingAnswers pending;

// What was computed before the library crashed, or called exit(), is not lost, and the row that did it is known.
void flush_at_exit() { pending.flush(); }
void flush_and_die(int number) {
  pending.flush();
  signal(number, SIG_DFL);
  raise(number);
}

void set_crash_handlers() {
  static std::array<char, 65536> stack;  // of the handler: the usual one may have overflowed
  stack_t alternative{};
  alternative.ss_sp = stack.data();
  alternative.ss_size = stack.size();
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_handler = flush_and_die;
  action.sa_flags = SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(number, &action, nullptr);
  std::atexit(flush_at_exit);
}

[[noreturn]] void throw_broken(const char* what) {
  throw IoError(fmt::format("worker: {}: {}", what, std::generic_category().message(errno)));
}

int own_descriptor(int standard) {
  const int own = fcntl(standard, F_DUPFD_CLOEXEC, kFirstOwnDescriptor);
  if (own < 0) throw_broken("stdin and stdout must be open");
  return own;
}

// stdin becomes empty and stdout goes where stderr goes.
void protect_streams() {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw_broken("streams cannot be redirected");
  close(nothing);
}

class Worker {
 public:
  Worker(const SimulatorLibrary& library, int in)
      : library_(library), in_(in), theta_(library.dim_theta), x_(library.dim_x) {}

  void serve() {
    const std::size_t request = sizeof(RequestHead) + theta_.size() * sizeof(double);
    std::string input;
    std::array<char, 65536> chunk;
    for (;;) {
      send();  // nothing may wait here while we wait there
      const ssize_t count = read(in_, chunk.data(), chunk.size());
      if (count < 0 && errno != EINTR) throw_broken("requests cannot be read");
      if (count == 0) return;
      if (count > 0) input.append(chunk.data(), static_cast<std::size_t>(count));
      std::size_t used = 0;
      for (; input.size() - used >= request; used += request) answer(input.data() + used);
      input.erase(0, used);
    }
  }

 private:
  void answer(const char* request) {
    RequestHead head;
    std::memcpy(&head, request, sizeof(head));
    std::memcpy(theta_.data(), request + sizeof(head), theta_.size() * sizeof(double));
    std::fill(x_.begin(), x_.end(), std::nan(""));  // what the library does not set is not data
    const AnswerHead result{
        head.row, library_.simulate(theta_.data(), static_cast<std::uint32_t>(head.seed), x_.data())};
    add(&result, sizeof(result));
    add(reinterpret_cast<const char*>(x_.data()), x_.size() * sizeof(double));
    if (pending.size >= kMostPending || since_send_.seconds() > kLongestDelay) send();
  }
  void add(const void* data, std::size_t count) {
    const char* place = static_cast<const char*>(data);
    while (count > 0) {
      const std::size_t part = std::min(count, pending.bytes.size() - pending.size);
      pending.add(place, part);
      place += part;
      count -= part;
      if (pending.size == pending.bytes.size()) send();
    }
  }
  void send() {
    if (!pending.flush()) throw_broken("answers cannot be written");
    since_send_ = Stopwatch();
  }

  const SimulatorLibrary& library_;
  int in_;
  std::vector<double> theta_, x_;
  Stopwatch since_send_;
};

}  // namespace
}  // namespace simulation

int run_library_worker(const std::filesystem::path& library) {
  using namespace simulation;
  const int in = own_descriptor(STDIN_FILENO);
  pending.out = own_descriptor(STDOUT_FILENO);
  protect_streams();
  const SimulatorLibrary loaded = load_simulator(library);
  set_crash_handlers();  // after loading, so that handlers of the library's start-up do not replace them
  LibraryGreeting greeting;
  greeting.dim_theta = static_cast<std::int64_t>(loaded.dim_theta);
  greeting.dim_x = static_cast<std::int64_t>(loaded.dim_x);
  pending.add(&greeting, sizeof(greeting));
  Worker(loaded, in).serve();
  return 0;
}

}  // namespace nrec
