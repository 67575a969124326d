#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nrec/core/stop.h"
#include "simulation/external/message_tail.h"
#include "simulation/external/supervisor.h"

namespace nrec::simulation {

// While it lives, writing to a pipe that nobody reads is an error code in this thread and not a signal.
class SigpipeBlocked {
 public:
  SigpipeBlocked();
  ~SigpipeBlocked();
  SigpipeBlocked(const SigpipeBlocked&) = delete;
  SigpipeBlocked& operator=(const SigpipeBlocked&) = delete;

 private:
  bool was_blocked_ = false;
};

// A running user's program with its three pipes. Never blocks: pump() moves what can be moved. The thread that uses
// it has SIGPIPE blocked.
class ChildProcess {
 public:
  enum class Input { pipe, nothing };
  enum class State { starting, running, ended, not_started, lost };

  // Errors   IoError: no descriptor left
  ChildProcess(Supervisor& supervisor, const LaunchPlan& plan, Input input);
  // Ends it, with all its descendants.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Queues bytes for its stdin.
  void send(std::string_view bytes) { input_ += bytes; }
  // Writes what can be written at once.
  void flush() {
    if (in_ >= 0 && unsent() > 0) write_input();
  }
  std::size_t unsent() const { return input_.size() - written_; }
  // Closes its stdin once everything queued is written, or can be no more.
  void close_input() { closes_input_ = true; }

  // Waits until something can be moved or `seconds` are over, and moves it.
  void pump(double seconds);

  // What it wrote on stdout and nobody took yet; the reader erases what it used. At most `limit` bytes are kept,
  // the rest is read and thrown away.
  std::string& output() { return output_; }
  void limit_output(std::size_t bytes) { output_limit_ = bytes; }
  bool output_overflowed() const { return overflowed_; }
  bool output_closed() const { return out_ < 0; }
  // The end of what it wrote on stderr.
  MessageTail& messages() { return messages_; }

  State state() const { return state_; }
  // It has been reported ended, not started or lost: nothing more will come.
  bool is_over() const { return state_ != State::starting && state_ != State::running; }
  pid_t process() const { return process_; }
  int wait_status() const { return status_; }          // when ended
  int start_error() const { return status_; }          // errno, when not started
  StartStage start_stage() const { return stage_; }    // when not started
  double seconds() const { return watch_.seconds(); }  // since it was asked for
  bool was_ended_by_us() const { return ended_by_us_; }

  // Ends it and all its descendants: SIGTERM, after `grace_seconds` SIGKILL. Returns when it is over, at the latest
  // some seconds later: a process that hangs in the kernel is left to its supervisor, which is then lost.
  void end(double grace_seconds);

 private:
  void write_input();
  void read_output();
  void read_messages();
  void read_reports();
  void drain_and_close();
  void close_all();

  Supervisor& supervisor_;
  Stopwatch watch_;
  State state_ = State::starting;
  pid_t process_ = 0;
  int status_ = 0;
  StartStage stage_ = StartStage::none;
  bool ended_by_us_ = false;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
  std::string input_;
  std::size_t written_ = 0;
  bool closes_input_ = false;
  std::string output_;
  std::size_t output_limit_ = static_cast<std::size_t>(-1);
  bool overflowed_ = false;
  MessageTail messages_;
};

}  // namespace nrec::simulation
