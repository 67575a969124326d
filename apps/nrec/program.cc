#include "program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "exit_code.h"
#include "help_text.h"
#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"
#include "nrec/core/suggest.h"
#include "progress_sink.h"
#include "verbs.h"

namespace nrec::app {

namespace {

std::string reason_of(ExitCode code) {
  switch (code) {
    case kUsage:
      return "wrong use of the command line";
    case kWrongInput:
      return "wrong input, or a file that cannot be read or written";
    case kSimulationFailures:
      return "simulations failed that the problem does not allow for";
    default:
      return "internal or numerical failure";
  }
}

int report(const std::string& who, const std::exception& error) {
  const ExitCode code = exit_code_of(error);
  to_stderr(printable_text(fmt::format("{}: error: {}\n", who, error.what())));
  to_stderr(fmt::format("{}: ended: {} (exit code {})\n", who, reason_of(code), static_cast<int>(code)));
  return code;
}

/// Words that stand before or instead of a verb; -1 when there are none of them.
int run_without_verb(const std::vector<std::string>& words, const std::vector<std::unique_ptr<Verb>>& verbs) {
  std::vector<const VerbSyntax*> syntaxes;
  for (const auto& verb : verbs) syntaxes.push_back(&verb->syntax());
  if (words.empty()) {
    to_stderr(fmt::format("{}\nnrec: no verb is given (exit code {})\n", help_text(syntaxes),
                          static_cast<int>(kUsage)));
    return kUsage;
  }
  const bool wants_help = words[0] == "--help" || words[0] == "-h" || words[0] == "help";
  if (words[0] == "--version") {
    fmt::print("nrec {}\n", NREC_VERSION);
    return kDone;
  }
  if (!wants_help) return -1;
  const auto asked = std::find_if(syntaxes.begin(), syntaxes.end(), [&](const VerbSyntax* s) {
    return words.size() > 1 && s->name == words[1];
  });
  fmt::print("{}", asked == syntaxes.end() ? help_text(syntaxes) : help_text(**asked));
  return kDone;
}

Verb& verb_called(const std::string& name, const std::vector<std::unique_ptr<Verb>>& verbs) {
  std::vector<std::string> names;
  for (const auto& verb : verbs) {
    if (verb->syntax().name == name) return *verb;
    if (!verb->syntax().is_hidden) names.push_back(verb->syntax().name);
  }
  if (name.starts_with("-"))
    throw UsageError(fmt::format("\"{}\" stands where a verb is expected; the verb comes first: {}", name,
                                 fmt::join(names, " | ")));
  const std::string nearest = nearest_word(name, names);
  throw UsageError(fmt::format("unknown verb \"{}\"; {}", name,
                               nearest.empty() ? fmt::format("it must be one of {}", fmt::join(names, " | "))
                                               : fmt::format("did you mean \"{}\"?", nearest)));
}

}  // namespace

int run_program(const std::vector<std::string>& words) {
  std::string who = "nrec";
  try {
    const std::vector<std::unique_ptr<Verb>> verbs = make_verbs();
    if (const int code = run_without_verb(words, verbs); code >= 0) return code;
    Verb& verb = verb_called(words[0], verbs);
    who += " " + words[0];
    const ParsedLine line = parse_command_line(std::span(words).subspan(1), verb.syntax());
    if (line.help) {
      fmt::print("{}", help_text(verb.syntax()));
      return kDone;
    }
    std::vector<std::string> command = words;
    command.insert(command.begin(), "nrec");
    const int code = verb.run(line, command);
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      throw IoError("stdout: the result cannot be written (disk full or closed)");
    return code;
  } catch (const std::bad_alloc&) {
    return report(
        who, std::runtime_error(
                 "not enough memory; use fewer simulations, a smaller network or a smaller num_classes"));
  } catch (const std::exception& error) {
    return report(who, error);
  }
}

}  // namespace nrec::app
