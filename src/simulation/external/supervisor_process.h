#pragma once

#include <sys/types.h>

namespace nrec::simulation {

// The life of a supervisor process: starts programs that its owner asks for, one at a time, ends them with all their
// descendants, and ends when the owner is gone. Runs in a process that was forked from one with several threads,
// where nothing but async-signal-safe functions may be called: no allocation, no locks.
[[noreturn]] void serve_owner(int socket, pid_t owner) noexcept;

}  // namespace nrec::simulation
