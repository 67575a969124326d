#pragma once

#include "nrec/core/stop.h"

namespace nrec::app {

/// While it lives, the first SIGINT or SIGTERM asks the running command to stop at its next safe point and
/// says so; the second ends the program at once with 128 + its number. One object at a time.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  const StopRequest& stop() const;
};

}  // namespace nrec::app
