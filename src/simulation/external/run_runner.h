#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "nrec/simulation/row_runner.h"
#include "simulation/external/program_host.h"

namespace nrec::simulation {

// protocol = "run": the program is started once per row.
class RunRunner final : public RowRunner {
 public:
  RunRunner(std::shared_ptr<const SimulatorSetup> setup, const RunnerSettings& settings);

  void run(std::span<const RowTask> tasks, const std::function<void(RowResult&&)>& done,
           const StopRequest& stop) override;

  ProgramHost& host() { return host_; }
  const XShape& x_shape() const { return x_shape_; }

 private:
  struct Files {
    std::filesystem::path scratch;
    std::string theta, x;  // names; empty when not used
  };
  struct Ending {
    RowResult result;
    bool is_interruption = false;
  };

  // Nothing: a stop was requested first.
  std::optional<RowResult> run_row(const RowTask& task, const StopRequest& stop);
  std::optional<Ending> run_once(const RowTask& task, const StopRequest& stop);
  Files prepare_files(const RowTask& task);
  // Waits for the end of the program. Returns why it had to be ended, "" when it ended by itself; nothing: stopped.
  std::optional<std::string> wait_for_end(ChildProcess& child, const StopRequest& stop) const;
  // Why the program is too late now; "" while it is not.
  std::string lateness(const ChildProcess& child, double closed_at) const;
  Ending judge(const RowTask& task, ChildProcess& child, const Files& files, std::string late);
  void read_answer(RowResult& result, ChildProcess& child, const Files& files);

  ProgramHost host_;
  XShape x_shape_;
  RowTimeLimit limit_;
  bool takes_input_;  // theta goes to stdin
};

}  // namespace nrec::simulation
