#pragma once

#include <memory>

#include "nrec/core/run_context.h"
#include "nrec/simulation/external_simulator.h"
#include "simulation/external/simulator_setup.h"

namespace nrec::simulation {

// The pre-flight runs; see ExternalSimulator::preflight.
PreflightReport run_preflight(const std::shared_ptr<const SimulatorSetup>& setup,
                              MatrixView<const double> theta, std::uint64_t seed, const RunContext& run);

// A runner for any protocol.
std::unique_ptr<RowRunner> make_runner(const std::shared_ptr<const SimulatorSetup>& setup,
                                       const RunnerSettings& settings);

}  // namespace nrec::simulation
