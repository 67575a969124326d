#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nrec/simulation/external_simulator.h"
#include "simulation/external/command_words.h"
#include "simulation/external/supervisor.h"

namespace nrec::simulation {

enum class Protocol { run, lines, npy, library };

// Everything about a simulator that stays the same: the options, read and checked.
struct SimulatorSetup {
  ExternalSimulatorOptions options;
  std::vector<std::string> names;  // of the parameters
  Protocol protocol = Protocol::run;
  std::filesystem::path program;         // what is executed
  std::filesystem::path library;         // protocol library
  std::vector<WordTemplate> words;       // argv
  WordTemplate line;                     // protocol lines
  std::filesystem::path folder;          // working folder, absolute
  std::filesystem::path scratch;         // base of scratch folders
  std::vector<std::string> environment;  // of every program

  bool is_persistent() const { return protocol != Protocol::run; }
};

// Errors   as the constructor of ExternalSimulator
std::shared_ptr<const SimulatorSetup> read_setup(ExternalSimulatorOptions options,
                                                 std::vector<std::string> names);

// Whether the command has a placeholder that tells parameters; without one the run protocol writes theta to stdin.
bool hands_theta_over(const SimulatorSetup& setup);

// Content hash of program, named files and call.
std::string setup_hash(const SimulatorSetup& setup);

// What a runner knows besides: known after the pre-flight runs, or told.
struct RunnerSettings {
  std::optional<std::vector<std::size_t>> x_shape;  // unknown: the first good row tells it
  double row_time_limit = 0.0;                      // seconds; 0: from the rows themselves
  double startup_seconds = -1.0;  // from the start of a program to its first answer; < 0: unknown
  double seconds_per_row = -1.0;  // < 0: unknown
};

// How to start the program for these values; `scratch` is its own folder.
LaunchPlan launch_plan(const SimulatorSetup& setup, const BlankValues& values,
                       const std::filesystem::path& scratch);

}  // namespace nrec::simulation
