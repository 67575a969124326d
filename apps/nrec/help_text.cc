#include "help_text.h"

#include <fmt/format.h>

#include <limits>

namespace nrec::app {

namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kIndent = 8;

/// `text` in lines of kWidth, each indented.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string result(indent, ' ');
  std::size_t column = indent;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    if (column > indent && column + 1 + (end - start) > kWidth) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += text.substr(start, end - start);
    column += end - start;
    start = end + 1;
  }
  return result + "\n";
}

/// What stands for the value behind a flag: the words themselves where there are few.
std::string value_word(const OptionEntry& entry) {
  switch (entry.kind) {
    case OptionEntry::Kind::boolean:
      return "";
    case OptionEntry::Kind::integer:
      return " INTEGER";
    case OptionEntry::Kind::real:
      return " NUMBER";
    case OptionEntry::Kind::text_list:
      return " TEXT,...";
    case OptionEntry::Kind::text:
      break;
  }
  return entry.choices.empty() ? " TEXT" : fmt::format(" {}", fmt::join(entry.choices, "|"));
}

/// "(>= 1, default 9)": range and default, "" when there is neither.
std::string range_text(const OptionEntry& entry) {
  if (entry.kind == OptionEntry::Kind::boolean) return "";
  Interval interval = entry.interval;
  if (interval.high >= std::numeric_limits<int>::max())
    interval.high = std::numeric_limits<double>::infinity();  // a limit of the machine
  std::string range = interval.text() == "any" ? "" : interval.text();
  if (!entry.default_text.empty() && entry.default_text != "\"\"" && entry.default_text != "[]")
    range += (range.empty() ? "default " : ", default ") + entry.default_text;
  return range.empty() ? "" : " (" + range + ")";
}

std::string entry_text(const OptionEntry& entry, const OptionTable& table) {
  const std::vector<std::string> flags = flags_of(entry, table);
  std::string names = flags.front() + value_word(entry);
  for (std::size_t i = 1; i < flags.size(); ++i) {
    // Names with their section always work; listing them would be noise.
    if (flags[i].find('.') == std::string::npos) names += ", " + flags[i];
  }
  return "  " + names + "\n" + wrapped(entry.help + range_text(entry), kIndent);
}

}  // namespace

std::string help_text(std::span<const VerbSyntax* const> verbs) {
  std::string text = "nrec: simulation-based inference by contrastive neural ratio estimation\n\n";
  for (const VerbSyntax* verb : verbs) {
    if (verb->is_hidden) continue;
    std::string arguments;
    for (const Argument& argument : verb->arguments)
      arguments += (argument.required ? " " : " [") + argument.name + (argument.required ? "" : "]");
    text += fmt::format("  nrec {:<28} {}\n", verb->name + arguments, verb->summary);
  }
  return text + "\nnrec VERB --help shows the flags of a verb, nrec --version the version.\n";
}

std::string help_text(const VerbSyntax& verb) {
  std::string text = "nrec " + verb.name;
  for (const Argument& argument : verb.arguments)
    text += (argument.required ? " " : " [") + argument.name + (argument.required ? "" : "]");
  text += " [flags]\n" + wrapped(verb.summary, 2) + "\n";
  for (const Argument& argument : verb.arguments)
    text += "  " + argument.name + "\n" + wrapped(argument.help, kIndent);
  std::string section;
  bool is_first = true;
  for (const OptionEntry& entry : verb.options.entries()) {
    if (is_first || entry.section != section) {
      text += entry.section.empty() ? "\nOf the command:\n" : "\n[" + entry.section + "]\n";
      section = entry.section;
      is_first = false;
    }
    text += entry_text(entry, verb.options);
  }
  text += "\n" + wrapped(
                     "Dashes and underscores in flags are equal, and every flag can carry its section in "
                     "front, --training.gamma for --gamma.",
                     0);
  if (!verb.notes.empty()) text += wrapped(verb.notes, 0);
  return text;
}

}  // namespace nrec::app
