#include <csignal>

#include "program.h"

int main(int argc, char** argv) {
  // A reader that goes away, or a limit on file sizes, is an error of writing like any other: it must not end a campaign.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return nrec::app::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
}
