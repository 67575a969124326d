#include "nrec/simulation/external_simulator.h"

#include <utility>

#include "nrec/core/error.h"
#include "simulation/external/persistent_runner.h"
#include "simulation/external/preflight.h"
#include "simulation/external/run_runner.h"
#include "simulation/external/scratch_folder.h"
#include "simulation/external/simulator_setup.h"

namespace nrec {

struct ExternalSimulator::State {
  std::shared_ptr<const simulation::SimulatorSetup> setup;
  simulation::RunnerSettings settings;
};

ExternalSimulator::ExternalSimulator(ExternalSimulatorOptions options,
                                     std::vector<std::string> parameter_names)
    : state_(std::make_unique<State>()) {
  state_->setup = simulation::read_setup(std::move(options), std::move(parameter_names));
  state_->settings.row_time_limit = state_->setup->options.row_time_limit;
  simulation::remove_stale_scratch(state_->setup->scratch);
}

ExternalSimulator::~ExternalSimulator() = default;
ExternalSimulator::ExternalSimulator(ExternalSimulator&&) noexcept = default;
ExternalSimulator& ExternalSimulator::operator=(ExternalSimulator&&) noexcept = default;

std::string ExternalSimulator::name() const {
  const ExternalSimulatorOptions& options = state_->setup->options;
  return options.library.empty() ? options.command : options.library;
}

std::string ExternalSimulator::hash() const { return simulation::setup_hash(*state_->setup); }

PreflightReport ExternalSimulator::preflight(MatrixView<const double> theta, std::uint64_t seed,
                                             const RunContext& run) {
  PreflightReport report = simulation::run_preflight(state_->setup, theta, seed, run);
  if (report.x_shape.empty()) return report;
  state_->settings.x_shape = report.x_shape;
  state_->settings.row_time_limit = report.row_time_limit;
  state_->settings.startup_seconds = report.startup_seconds;
  state_->settings.seconds_per_row = report.seconds_per_row;
  return report;
}

void ExternalSimulator::set_x_shape(std::vector<std::size_t> shape, double startup_seconds,
                                    double seconds_per_row) {
  state_->settings.x_shape = std::move(shape);
  state_->settings.startup_seconds = startup_seconds;
  state_->settings.seconds_per_row = seconds_per_row;
}

std::unique_ptr<RowRunner> ExternalSimulator::make_runner() {
  require_internal(state_->settings.x_shape.has_value(),
                   "ExternalSimulator: runners need preflight() or set_x_shape()");
  return simulation::make_runner(state_->setup, state_->settings);
}

namespace simulation {

std::unique_ptr<RowRunner> make_runner(const std::shared_ptr<const SimulatorSetup>& setup,
                                       const RunnerSettings& settings) {
  if (!setup->is_persistent()) return std::make_unique<RunRunner>(setup, settings);
  return std::make_unique<PersistentRunner>(setup, settings);
}

}  // namespace simulation
}  // namespace nrec
