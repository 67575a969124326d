#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nrec/commands/problem.h"
#include "nrec/io/toml.h"

namespace nrec {

/// Reads [parameters] into `options`; every broken rule becomes one text in `errors`, starting with
/// "file:line: ".
void read_parameters(const TomlValue& section, const std::string& file, ParameterOptions& options,
                     std::vector<std::string>& errors);

/// The lines of [parameters] for problem_text(); `samples_file` replaces options.from_samples.
std::string parameters_text(const ParameterOptions& options, const std::string& samples_file);

/// How a value is called in messages: `name = "text"`, shortened.
std::string shown_value(const TomlValue& value);

}  // namespace nrec
