#include "simulation/external/supervisor_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "simulation/external/descendants.h"
#include "simulation/external/program_start.h"
#include "simulation/external/supervisor_protocol.h"

namespace nrec::simulation {
namespace {

using Milliseconds = std::int64_t;

// How long killed processes may take to disappear before the owner is told that they do not: a process that hangs
// in the kernel (a dead network disk) cannot be killed.
constexpr Milliseconds kSweepTime = 5000;
// The same when the owner is gone and nobody waits.
constexpr Milliseconds kLastSweepTime = 60000;
// A copy of the owner made by somebody's fork() can hold our socket open: look whether the owner lives, too.
constexpr Milliseconds kOwnerCheck = 1000;
constexpr Milliseconds kSweepPause = 5;

Milliseconds now() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<Milliseconds>(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
}

bool receive_all(int socket, void* bytes, std::size_t size) noexcept {
  auto* place = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t count = recv(socket, place, size, MSG_WAITALL);
    if (count == 0 || (count < 0 && errno != EINTR)) return false;
    if (count < 0) continue;
    place += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

// A header and the descriptors that came with it.
bool receive_header(int socket, CommandHeader& header, int (&descriptors)[3]) noexcept {
  iovec part{&header, sizeof(header)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(descriptors))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t count;
  do {
    count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return false;
  for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr; item = CMSG_NXTHDR(&message, item)) {
    if (item->cmsg_type == SCM_RIGHTS && item->cmsg_len == CMSG_LEN(sizeof(descriptors)))
      std::memcpy(descriptors, CMSG_DATA(item), sizeof(descriptors));
  }
  const auto got = static_cast<std::size_t>(count);
  return receive_all(socket, reinterpret_cast<char*>(&header) + got, sizeof(header) - got);
}

class Supervision {
 public:
  Supervision(int socket, int signals, pid_t owner) noexcept
      : socket_(socket), signals_(signals), owner_(owner) {}

  [[noreturn]] void serve() noexcept {
    for (;;) {
      pollfd events[2] = {{socket_, POLLIN, 0}, {signals_, POLLIN, 0}};
      poll(events, 2, static_cast<int>(time_to_wait()));
      forget_signals();
      if (events[0].revents != 0 && !obey()) leave();
      if (getppid() != owner_) leave();
      if (leader_ != 0) look_after_program();
      reap_orphans();
    }
  }

 private:
  Milliseconds time_to_wait() const noexcept {
    if (!is_ending_) return kOwnerCheck;
    const Milliseconds left = kill_time_ - now();
    return left < 0 ? 0 : left < kOwnerCheck ? left : kOwnerCheck;
  }

  // Signals only wake us; who ended is asked of waitid().
  void forget_signals() noexcept {
    signalfd_siginfo waste[8];
    while (read(signals_, waste, sizeof(waste)) > 0) {
    }
  }

  // Reads and does one command; false when the owner is gone.
  bool obey() noexcept {
    CommandHeader header;
    int descriptors[3] = {-1, -1, -1};
    if (!receive_header(socket_, header, descriptors)) return false;
    if (header.command == Command::start) return start(header, descriptors);
    if (header.command == Command::end && leader_ != 0 && !is_ending_) {
      is_ending_ = true;
      kill_time_ = now() + header.grace_milliseconds;
      kill(-leader_, SIGTERM);
      kill(-leader_, SIGCONT);  // a stopped process would not hear it
    }
    return true;
  }

  bool start(const CommandHeader& header, const int (&descriptors)[3]) noexcept {
    const std::size_t num_pointers = header.num_words + header.num_variables + 2;
    const std::size_t size = num_pointers * sizeof(char*) + header.bytes + 1;
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;  // the owner sees us gone and tries another supervisor
    char* text = static_cast<char*>(memory) + num_pointers * sizeof(char*);
    const bool complete = receive_all(socket_, text, header.bytes);
    if (complete) launch(header, descriptors, static_cast<char**>(memory), text);
    munmap(memory, size);
    for (const int descriptor : descriptors) close(descriptor);
    return complete;
  }

  void launch(const CommandHeader& header, const int (&descriptors)[3], char** pointers,
              char* text) noexcept {
    const auto next = [&text] {
      char* word = text;
      text += std::strlen(text) + 1;
      return word;
    };
    ProgramStart start;
    start.program = next();
    start.folder = next();
    start.words = pointers;
    start.environment = pointers + header.num_words + 1;
    for (std::uint32_t i = 0; i < header.num_words; ++i) start.words[i] = next();
    for (std::uint32_t i = 0; i < header.num_variables; ++i) start.environment[i] = next();
    std::memcpy(start.descriptors, descriptors, sizeof(start.descriptors));
    start.memory_limit = header.memory_limit;
    leader_ = start_program(start);
    is_ending_ = false;
    if (leader_ != 0) {
      say({Report::Kind::started, leader_, StartStage::none, 0});
    } else {
      say({Report::Kind::not_started, start.error, start.failed_stage, 0});
    }
  }

  // Whether the program has ended; it stays a zombie, so its process group cannot be given to somebody else.
  bool program_has_ended() const noexcept {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(leader_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == leader_;
  }

  void look_after_program() noexcept {
    const bool ended = program_has_ended();
    if (!ended && (!is_ending_ || now() < kill_time_)) return;
    kill(-leader_, SIGKILL);
    const bool gone = ended || wait_for_program();
    int status = 0;
    if (gone && waitpid(leader_, &status, WNOHANG) != leader_) status = SIGKILL;
    leader_ = 0;
    is_ending_ = false;
    // Whatever the program started and left behind has become ours.
    const bool clean = sweep(kSweepTime) && gone;
    say({Report::Kind::ended, gone ? status : SIGKILL, StartStage::none, clean ? 0U : 1U});
  }

  bool wait_for_program() noexcept {
    for (const Milliseconds end = now() + kSweepTime; now() < end; pause()) {
      if (program_has_ended()) return true;
    }
    return false;
  }

  // Kills and reaps all descendants; false when some are left after `time`.
  bool sweep(Milliseconds time) noexcept {
    for (const Milliseconds end = now() + time;;) {
      if (!reap_orphans()) return true;
      if (now() >= end) return false;
      kill_children();
      pause();
    }
  }

  // Reaps everything that has ended but the program itself. False when no child is left.
  bool reap_orphans() noexcept {
    for (;;) {
      siginfo_t info{};
      if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return false;
      if (info.si_pid == 0 || info.si_pid == leader_) return true;
      waitpid(info.si_pid, nullptr, WNOHANG);
    }
  }

  void pause() const noexcept {
    pollfd event{signals_, POLLIN, 0};
    poll(&event, 1, static_cast<int>(kSweepPause));
    signalfd_siginfo waste;
    [[maybe_unused]] const ssize_t read_bytes = read(signals_, &waste, sizeof(waste));
  }

  void say(const Report& report) const noexcept { send(socket_, &report, sizeof(report), MSG_NOSIGNAL); }

  [[noreturn]] void leave() noexcept {
    if (leader_ != 0) kill(-leader_, SIGKILL);
    leader_ = 0;
    sweep(kLastSweepTime);
    _exit(0);
  }

  int socket_;
  int signals_;
  pid_t owner_;
  pid_t leader_ = 0;
  bool is_ending_ = false;
  Milliseconds kill_time_ = 0;
};

// Signals must neither end us nor run the owner's handlers; children must be ours to wait for.
void calm_signals() noexcept {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  sigemptyset(&usual.sa_mask);
  for (int number = 1; number < NSIG; ++number) sigaction(number, &usual, nullptr);
}

// Nothing of the owner stays open here but our socket, which becomes descriptor 3.
void keep_only(int socket) noexcept {
  if (socket != 3) dup2(socket, 3);
  fcntl(3, F_SETFD, FD_CLOEXEC);
  close_range(4, ~0U, 0);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard = 0; standard < 3; ++standard) dup2(nothing, standard);
  if (nothing > 2) close(nothing);
}

}  // namespace

void serve_owner(int socket, pid_t owner) noexcept {
  calm_signals();
  keep_only(socket);
  setsid();  // neither the terminal's signals nor those to the owner's group are for us
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NAME, "nrec-supervisor");
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) _exit(1);
  Supervision(3, signals, owner).serve();
}

}  // namespace nrec::simulation
