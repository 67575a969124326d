#include "simulation/external/supervisor.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <system_error>
#include <thread>

#include "nrec/core/error.h"
#include "simulation/external/supervisor_process.h"

namespace nrec::simulation {
namespace {

// How long the destructor waits for the process to end what it has and to go; it goes on alone after that.
constexpr int kLeavePauses = 600;
constexpr std::chrono::milliseconds kLeavePause{5};

// Fork without the handlers that libraries registered: the child does nothing that they prepare for. The sanitizers
// know only the ordinary fork.
pid_t plain_fork() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return fork();
#else
  return _Fork();
#endif
}

[[noreturn]] void throw_no_process(const char* what, int code) {
  throw IoError(fmt::format(
      "simulator: no {} for running programs: {}; fewer threads or a higher limit (ulimit {}) help", what,
      std::generic_category().message(code), code == EMFILE || code == ENFILE ? "-n" : "-u"));
}

}  // namespace

Supervisor::Supervisor() {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    throw_no_process("descriptor is left", errno);
  const pid_t owner = getpid();
  process_ = plain_fork();
  if (process_ == 0) serve_owner(sockets[1], owner);
  const int code = errno;
  close(sockets[1]);
  if (process_ < 0) {
    close(sockets[0]);
    throw_no_process("process can be made", code);
  }
  socket_ = sockets[0];
}

Supervisor::~Supervisor() {
  close(socket_);
  for (int i = 0; i < kLeavePauses; ++i) {
    if (waitpid(process_, nullptr, WNOHANG) != 0)
      return;  // gone, or reaped by the program that we are part of
    std::this_thread::sleep_for(kLeavePause);
  }
}

void Supervisor::start(const LaunchPlan& plan, const int (&descriptors)[3]) {
  std::string text;
  const auto add = [&text](const std::string& word) { text.append(word.c_str(), word.size() + 1); };
  add(plan.program);
  add(plan.folder);
  for (const std::string& word : plan.words) add(word);
  for (const std::string& entry : plan.environment) add(entry);
  CommandHeader header;
  header.command = Command::start;
  header.num_words = static_cast<std::uint32_t>(plan.words.size());
  header.num_variables = static_cast<std::uint32_t>(plan.environment.size());
  header.bytes = text.size();
  header.memory_limit = plan.memory_limit;
  send_command(header, text, descriptors);
}

void Supervisor::end(double grace_seconds) {
  CommandHeader header;
  header.command = Command::end;
  header.grace_milliseconds = static_cast<std::uint32_t>(std::lround(grace_seconds * 1000));
  send_command(header, {}, nullptr);
}

void Supervisor::send_command(const CommandHeader& header, std::string_view text, const int* descriptors) {
  iovec part{const_cast<CommandHeader*>(&header), sizeof(header)};
  alignas(cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptors != nullptr) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* item = CMSG_FIRSTHDR(&message);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(3 * sizeof(int));
    std::memcpy(CMSG_DATA(item), descriptors, 3 * sizeof(int));
  }
  // A header is far smaller than the socket's buffer, so it goes as a whole.
  ssize_t sent;
  do {
    sent = sendmsg(socket_, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent != static_cast<ssize_t>(sizeof(header))) is_lost_ = true;
  while (!text.empty() && !is_lost_) {
    const ssize_t count = send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR) is_lost_ = true;
  }
}

std::optional<Report> Supervisor::next_report() {
  Report report;
  const ssize_t count = recv(socket_, &report, sizeof(report), MSG_DONTWAIT);
  if (count == static_cast<ssize_t>(sizeof(report))) return report;
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  is_lost_ = true;
  return std::nullopt;
}

}  // namespace nrec::simulation
