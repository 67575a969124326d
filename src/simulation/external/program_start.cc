#include "simulation/external/program_start.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace nrec::simulation {
namespace {

constexpr int kNotStarted = 127;

[[noreturn]] void fail(ProgramStart& start, StartStage stage) noexcept {
  start.error = errno;
  start.failed_stage = stage;
  _exit(kNotStarted);
}

bool lower_limit(__rlimit_resource_t resource, std::uint64_t bytes) noexcept {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return false;
  const auto wanted = static_cast<rlim_t>(bytes);
  if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < wanted) return true;  // stricter already
  limit.rlim_cur = limit.rlim_max = wanted;
  return setrlimit(resource, &limit) == 0;
}

// A file table of our own with nothing in it but what the program is to have.
bool set_descriptors(const int (&from)[3]) noexcept {
  for (int to = 0; to < 3; ++to) {
    if (dup2(from[to], to) < 0) return false;
  }
  // Everything else is closed by exec; where the kernel knows this call, mistakes elsewhere do no harm either.
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  return true;
}

[[noreturn]] void become_program(ProgramStart& start, pid_t supervisor) noexcept {
  if (setsid() < 0) fail(start, StartStage::process);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail(start, StartStage::process);
  if (getppid() != supervisor) _exit(kNotStarted);  // it died before the line above
  if (!set_descriptors(start.descriptors)) fail(start, StartStage::process);
  if (!lower_limit(RLIMIT_CORE, 0)) fail(start, StartStage::limits);
  if (start.memory_limit != 0 && !lower_limit(RLIMIT_DATA, start.memory_limit))
    fail(start, StartStage::limits);
  if (chdir(start.folder) != 0) fail(start, StartStage::folder);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(start.program, start.words, start.environment);
  fail(start, StartStage::program);
}

}  // namespace

pid_t start_program(ProgramStart& start) noexcept {
  start.failed_stage = StartStage::none;
  start.error = 0;
  const pid_t self = getpid();
  const pid_t child = vfork();
  if (child == 0) become_program(start, self);
  if (child < 0) {
    start.error = errno;
    start.failed_stage = StartStage::process;
    return 0;
  }
  return start.failed_stage == StartStage::none ? child : 0;  // a child that failed is reaped by the caller
}

}  // namespace nrec::simulation
