#pragma once

#include <span>
#include <string>

#include "command_line.h"

namespace nrec::app {

/// Help of the program: its verbs.
std::string help_text(std::span<const VerbSyntax* const> verbs);
/// Help of a verb: its arguments and every flag with type, range and default, by section of the problem file.
std::string help_text(const VerbSyntax& verb);

}  // namespace nrec::app
