#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/external/supervisor_protocol.h"

namespace nrec::simulation {

// What a program needs to start.
struct LaunchPlan {
  std::string program;                   // path of the file; no search
  std::string folder;                    // working directory
  std::vector<std::string> words;        // argv, the name of the program first
  std::vector<std::string> environment;  // NAME=value
  std::uint64_t memory_limit = 0;        // bytes of data per process; 0: none
};

// A small process of ours between this process and users' programs. It starts them, one at a time, and is the one to
// whom everything they leave behind belongs (PR_SET_CHILD_SUBREAPER): when a program has ended, all its descendants
// are ended and reaped, whatever group or session they fled to. It lives as long as its socket, so when this process
// is killed, simulators die with it. This process itself gets no foreign children and no changed settings.
//
// One per runner: 1 ms to make, the memory of this process is shared until it is written to.
class Supervisor {
 public:
  // Errors   IoError: no process or no descriptor left
  Supervisor();
  // Ends what still runs.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Asks for a program with these stdin, stdout and stderr. The answer comes as a report.
  void start(const LaunchPlan& plan, const int (&descriptors)[3]);
  // Asks for its end: SIGTERM to the group, SIGKILL after `grace_seconds`.
  void end(double grace_seconds);
  // The next report, if one is there. Never waits.
  std::optional<Report> next_report();
  // Becomes readable when a report is there or the process is gone.
  int descriptor() const { return socket_; }
  // The process has been killed by somebody, or does not answer any more.
  bool is_lost() const { return is_lost_; }
  void give_up() { is_lost_ = true; }

 private:
  void send_command(const CommandHeader& header, std::string_view text, const int* descriptors);

  int socket_ = -1;
  pid_t process_ = 0;
  bool is_lost_ = false;
};

}  // namespace nrec::simulation
