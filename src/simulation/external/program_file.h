#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "simulation/external/supervisor_protocol.h"

namespace nrec::simulation {

// The file of a program: a name with a slash is relative to `folder`, others are looked up in the folders of `path`
// (the variable PATH).
// Errors   IoError: not there, a folder, not executable, each with what to do
std::filesystem::path find_program(const std::string& name, const std::filesystem::path& folder,
                                   std::string_view path);

// Value of a variable in NAME=value entries; "" when it is not there.
std::string variable(std::span<const std::string> environment, std::string_view name);

// Why a program that is there could not be started, with a next step.
std::string start_failure(const std::filesystem::path& program, StartStage stage, int code);

// Whether starting it again may work: the system was short of something.
bool is_passing_failure(StartStage stage, int code);

}  // namespace nrec::simulation
