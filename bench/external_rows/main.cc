// external_rows_bench [microseconds per row] [workers] [seconds per protocol]
//
// For each protocol: rows per second of all workers together, and the processor time that a row costs beyond the
// simulation itself (of this process and of everything it started).
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "nrec/simulation/external_simulator.h"

namespace {

nrec::ExternalSimulatorOptions options_of(const std::string& protocol) {
  nrec::ExternalSimulatorOptions options;
  if (protocol == "library") {
    options.library = NREC_STUB_LIBRARY;
    options.worker_program = NREC_STUB_WORKER;
    return options;
  }
  options.command = "'" NREC_STUB_SIMULATOR "' " + protocol + " bench";
  options.protocol = protocol == "npy" || protocol == "run" ? protocol : "lines";
  if (protocol == "run") options.command += " {theta} 1 {seed}";
  if (protocol == "lines") options.line = "{seed} {theta} 1";
  if (protocol == "ids") options.line = "{row} {seed} {theta} 1";
  return options;
}

double processor_seconds() {
  double sum = 0.0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      sum += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return sum;
}

void measure(const std::string& protocol, double microseconds, int workers, double seconds) {
  const std::vector<std::string> names = protocol == "npy" || protocol == "library"
                                             ? std::vector<std::string>{"a", "b"}
                                             : std::vector<std::string>{"a"};
  nrec::ExternalSimulator simulator(options_of(protocol), names);
  simulator.set_x_shape({3});
  const std::vector<double> theta = {0.25, 1.0};
  std::vector<nrec::RowTask> tasks;
  const std::size_t rows_per_call = protocol == "run" ? 100 : 50000;
  for (std::size_t i = 0; i < rows_per_call; ++i)
    tasks.push_back({i, static_cast<std::uint32_t>(i), std::span(theta).first(names.size())});

  const double processor_before = processor_seconds();
  const nrec::Stopwatch watch;
  std::atomic<std::size_t> good{0}, bad{0};
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&] {
      const auto runner = simulator.make_runner();
      while (watch.seconds() < seconds) {
        runner->run(tasks, [&](nrec::RowResult&& row) { ++(row.status == nrec::RowStatus::ok ? good : bad); },
                    {});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double rows = static_cast<double>(good);
  std::printf("%-8s %2d workers  %6.1f us per row: %9.0f rows/s  processor %6.1f us per row  failed %zu\n",
              protocol.c_str(), workers, microseconds, rows / watch.seconds(),
              1e6 * (processor_seconds() - processor_before) / rows, bad.load());
}

}  // namespace

int main(int count, char** words) {
  const double microseconds = count > 1 ? std::atof(words[1]) : 10.0;
  const int workers = count > 2 ? std::atoi(words[2]) : 2;
  const double seconds = count > 3 ? std::atof(words[3]) : 3.0;
  setenv("NREC_STUB_ROW_US", words[1] ? words[1] : "10", 1);
  for (const char* protocol : {"run", "lines", "ids", "npy", "library"})
    measure(protocol, microseconds, workers, seconds);
}
