#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace nrec::simulation {

// A loaded library with the interface of nrec/simulator_interface.h.
struct SimulatorLibrary {
  std::size_t dim_theta = 0;
  std::size_t dim_x = 0;
  std::int32_t (*simulate)(const double* theta, std::uint32_t seed, double* x) = nullptr;
};

// Loads a library for the rest of the process.
// Errors   IoError: cannot be loaded; ConfigError: a function is missing, another version, dimensions below 1
SimulatorLibrary load_simulator(const std::filesystem::path& path);

}  // namespace nrec::simulation
