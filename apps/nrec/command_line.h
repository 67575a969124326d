#pragma once

#include <span>
#include <string>
#include <vector>

#include "nrec/commands/problem.h"
#include "nrec/core/options.h"

namespace nrec::app {

/// A word of the command line that is no flag.
struct Argument {
  std::string name;
  std::string help;
  bool required = true;
};

/// What a verb takes. The options are bound to structs of the verb.
struct VerbSyntax {
  std::string name;
  std::string summary;
  std::vector<Argument> arguments;
  OptionTable options;
  std::string notes;       // last paragraph of the help
  bool is_hidden = false;  // not in the list of verbs: nrec itself calls it
};

/// The flags of an entry, the first being the one to show: "--num-classes", "--training.num-classes", "--K".
/// A name that several sections have is only known with its section.
std::vector<std::string> flags_of(const OptionEntry& entry, const OptionTable& table);

struct ParsedLine {
  bool help = false;
  std::vector<std::string> arguments;
  std::vector<OptionOverride> flags;
};

/// Words after the verb -> arguments and flags; dashes and underscores in flags are equal.
/// Errors   UsageError: unknown flag (with the nearest known one), a flag twice or without its value, too few
/// or too many arguments
ParsedLine parse_command_line(std::span<const std::string> words, const VerbSyntax& verb);

}  // namespace nrec::app
