#include "signals.h"

#include <signal.h>
#include <unistd.h>

#include <string_view>

namespace nrec::app {

namespace {

// A handler can reach nothing but statics.
StopRequest stop_request;
struct sigaction earlier_int, earlier_term;

void handle(int number) {
  if (stop_request.requested()) _exit(128 + number);
  stop_request.request(number);
  constexpr std::string_view kText =
      "\nstopping after this step and saving the state; once more stops at once\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
}

}  // namespace

SignalGuard::SignalGuard() {
  stop_request.request(0);
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &earlier_int);
  sigaction(SIGTERM, &action, &earlier_term);
  // A caller that ignores SIGINT (a job in the background of a shell) wants it ignored.
  if (earlier_int.sa_handler == SIG_IGN) sigaction(SIGINT, &earlier_int, nullptr);
}

SignalGuard::~SignalGuard() {
  sigaction(SIGINT, &earlier_int, nullptr);
  sigaction(SIGTERM, &earlier_term, nullptr);
}

const StopRequest& SignalGuard::stop() const { return stop_request; }

}  // namespace nrec::app
