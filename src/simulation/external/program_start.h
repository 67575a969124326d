#pragma once

#include <sys/types.h>

#include <cstdint>

#include "simulation/external/supervisor_protocol.h"

namespace nrec::simulation {

// A program about to be started by a supervisor process. Nothing here allocates.
struct ProgramStart {
  const char* program = nullptr;
  const char* folder = nullptr;
  char** words = nullptr;        // ended by a null pointer
  char** environment = nullptr;  // ended by a null pointer
  int descriptors[3] = {-1, -1, -1};
  std::uint64_t memory_limit = 0;  // bytes; 0: none
  // Out: where and why it failed. Written by the child, which shares this memory until it is the program.
  volatile StartStage failed_stage = StartStage::none;
  volatile int error = 0;
};

// Process id of the program, 0 when it could not be started.
//
// The child is made with vfork: it costs the same however large this process is, and it tells its errors through
// shared memory. In the child all signals have their default meaning and none is blocked; it leads a session of its
// own, so it has no terminal to wait for; it gets SIGKILL when this process dies; it dumps no core.
pid_t start_program(ProgramStart& start) noexcept;

}  // namespace nrec::simulation
