#pragma once

#include <filesystem>

namespace nrec {

/// The life of a worker process for a simulator in a shared library: loads it, greets on stdout, then reads requests
/// from stdin and answers them on stdout until its input ends. `nrec worker --library FILE` does nothing else; see
/// ExternalSimulatorOptions::worker_program. The process belongs to it: stdout is redirected to stderr and stdin to
/// /dev/null, so that what the library prints or reads cannot damage the exchange; signal handlers are set.
///
/// Returns  exit code 0: the input has ended
/// Errors   IoError: the library cannot be loaded, or the exchange broke; ConfigError: a function of
///          nrec/simulator_interface.h is missing, another version of the interface, dimensions below 1
int run_library_worker(const std::filesystem::path& library);

}  // namespace nrec
