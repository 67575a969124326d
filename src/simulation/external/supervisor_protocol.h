#pragma once

#include <cstdint>

namespace nrec::simulation {

// What a Supervisor object and its process say to each other over a socket pair. Both are the same program.
//
// Owner to process: a CommandHeader; with `start` also the descriptors of the program's stdin, stdout and stderr
// (SCM_RIGHTS) and `bytes` bytes of text: program, folder, words, environment, each ended by a zero byte.
// Process to owner: Reports. A program is started only when the one before has ended.
enum class Command : std::uint32_t { start = 1, end = 2 };

struct CommandHeader {
  Command command = Command::start;
  std::uint32_t num_words = 0;
  std::uint32_t num_variables = 0;
  std::uint32_t grace_milliseconds = 0;  // end: between SIGTERM and SIGKILL
  std::uint64_t bytes = 0;
  std::uint64_t memory_limit = 0;  // bytes; 0: none
};

// Where a start went wrong.
enum class StartStage : std::uint32_t { none = 0, process = 1, folder = 2, limits = 3, program = 4 };

struct Report {
  enum class Kind : std::uint32_t { started = 1, not_started = 2, ended = 3 };
  Kind kind = Kind::started;
  std::int32_t value = 0;               // started: process id; not_started: errno; ended: status of waitpid
  StartStage stage = StartStage::none;  // not_started
  std::uint32_t is_stuck = 0;           // ended: 1: a process of the program outlived SIGKILL
};

}  // namespace nrec::simulation
