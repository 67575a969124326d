#pragma once

// What the stub simulators do for theta[0] = kFirstCode + code; below kFirstCode they behave.

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace stub {

constexpr double kFirstCode = 1000.0;

enum Code {
  behave = 0,
  exit_1 = 1,
  exit_255,
  exit_77,
  segmentation_fault,
  abort_,
  killed,
  terminated,
  hang,
  hang_ignoring_term,
  hang_in_grandchild,
  hang_in_escaped_grandchild,
  leave_escaped_grandchild,
  stop_itself,
  close_stdout_and_run_on,
  nan_value,
  infinite_value,
  one_too_few,
  one_too_many,
  no_answer,
  text_before,
  text_after,
  comma_decimals,
  binary_garbage,
  flood_stdout,
  flood_stderr,
  out_of_order,
  twice,
  other_id,
  fill_scratch,
  delete_scratch,
  read_stdin,
  use_memory,
  refuse_in_words,
  no_line_end,
  a_line_too_many,
  crash_at_end,
  hang_at_end,
  leak,  // a little memory per row; x[2] is the process
};

inline double first_value(Code code) { return kFirstCode + static_cast<double>(code); }
inline int code_of(double theta) {
  return theta < kFirstCode ? 0 : static_cast<int>(theta - kFirstCode + 0.5);
}

// The right x of a row.
inline std::vector<double> right_x(double theta_0, double theta_1, double seed) {
  if (code_of(theta_0) == leak) seed = static_cast<double>(getpid());
  return {theta_0 + theta_1, theta_0 - theta_1, seed};
}

inline void sleep_forever() {
  for (;;) pause();
}

// Starts a process that hangs, in a session of its own when `escapes`. It keeps the pipes open.
inline void start_hanging_child(bool escapes) {
  if (fork() != 0) return;
  if (escapes) setsid();
  signal(SIGTERM, SIG_IGN);
  sleep_forever();
}

inline void flood(int descriptor, long megabytes) {
  const std::string chunk(1 << 20, descriptor == 1 ? '7' : 'e');
  for (long i = 0; i < megabytes; ++i) {
    for (std::size_t done = 0; done < chunk.size();) {
      const ssize_t count = write(descriptor, chunk.data() + done, chunk.size() - done);
      if (count <= 0) _exit(9);
      done += static_cast<std::size_t>(count);
    }
  }
}

inline long flood_megabytes() {
  const char* text = std::getenv("NREC_TEST_FLOOD_MB");
  return text ? std::atol(text) : 256;
}

inline void fill_folder(const std::filesystem::path& scratch) {
  for (int i = 0; i < 200; ++i)
    std::ofstream(scratch / ("file" + std::to_string(i))) << std::string(20000, 'x');
  std::filesystem::create_directories(scratch / "a" / "b" / "c");
  std::ofstream(scratch / "a" / "b" / "file") << "x";
  std::error_code ignored;
  std::filesystem::create_symlink("/", scratch / "link", ignored);
  chmod((scratch / "a" / "b").c_str(), 0);
  chmod((scratch / "a").c_str(), 0500);
}

// Does what does not concern the answer; returns when the row is to be answered.
inline void misbehave(int code) {
  const char* scratch = std::getenv("NREC_SCRATCH");
  switch (code) {
    case exit_1:
      std::fprintf(stderr, "about to leave\n");
      std::exit(1);
    case exit_255:
      std::exit(255);
    case exit_77:
      std::exit(77);
    case segmentation_fault:
      raise(SIGSEGV);
      break;
    case abort_:
      std::abort();
    case killed:
      raise(SIGKILL);
      break;
    case terminated:
      raise(SIGTERM);
      break;
    case hang_ignoring_term:
      signal(SIGTERM, SIG_IGN);
      sleep_forever();
      break;
    case hang:
      sleep_forever();
      break;
    case hang_in_grandchild:
      start_hanging_child(false);
      sleep_forever();
      break;
    case hang_in_escaped_grandchild:
      start_hanging_child(true);
      sleep_forever();
      break;
    case leave_escaped_grandchild:
      start_hanging_child(true);
      start_hanging_child(false);
      break;
    case stop_itself:
      raise(SIGSTOP);
      break;
    case flood_stderr:
      flood(2, flood_megabytes());
      std::fprintf(stderr, "\nthe last line\n");
      break;
    case fill_scratch:
      fill_folder(scratch);
      break;
    case delete_scratch:
      std::filesystem::remove_all(std::filesystem::path(scratch).parent_path());
      break;
    case read_stdin: {
      char waste[64];
      while (read(0, waste, sizeof(waste)) > 0) {
      }
      break;
    }
    case use_memory: {
      std::vector<std::string> blocks;
      for (int i = 0; i < 2000; ++i) blocks.emplace_back(1 << 20, 'm');  // 2 GB, if it may
      break;
    }
    case leak: {
      static std::vector<std::string> leaked;
      leaked.emplace_back(5000, 'l');
      break;
    }
    default:
      break;
  }
}

}  // namespace stub
