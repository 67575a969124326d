#pragma once

#include <sys/types.h>

#include <cstdint>

namespace nrec::simulation {

// What /proc says of a process. Nothing here allocates: a supervisor process uses it.
struct ProcessFacts {
  pid_t process = 0;
  pid_t parent = 0;
  pid_t session = 0;
  std::uint64_t resident_pages = 0;
};

// Calls visit(facts, context) for every process that /proc shows. False when /proc cannot be read.
bool for_each_process(void (*visit)(const ProcessFacts&, void*), void* context) noexcept;

// Sends SIGKILL to every child of this process.
void kill_children() noexcept;

// Memory in use by the processes of a session, in bytes; pages that they share count once per process.
std::uint64_t session_memory(pid_t session) noexcept;

}  // namespace nrec::simulation
