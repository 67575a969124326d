// The only file that sees CLI11: it is slow to compile.
#include "command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "nrec/core/error.h"
#include "nrec/core/suggest.h"

namespace nrec::app {

namespace {

std::string dashed(std::string text) {
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

bool is_number(std::string_view text) {
  return text.size() > 1 && text[0] == '-' &&
         (text[1] == '.' || (text[1] >= '0' && text[1] <= '9') || text == "-inf" || text == "-nan");
}

/// What users of other programs call a flag, or "".
std::string familiar_name(std::string_view flag, const std::vector<std::string>& known) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"--num-sims", "--num-simulations"},
                                                                      {"--epochs", "--max-num-epochs"},
                                                                      {"--num-epochs", "--max-num-epochs"},
                                                                      {"--lr", "--learning-rate"},
                                                                      {"--batch", "--training-batch-size"}};
  for (const auto& [name, ours] : kNames) {
    if (name == flag && std::ranges::find(known, ours) != known.end()) return std::string(ours);
  }
  return "";
}

/// The words with the names of flags in dashes. Errors: UsageError for the first unknown flag, and for "--flag=" of one that takes no value.
std::vector<std::string> checked_words(std::span<const std::string> words, const VerbSyntax& verb) {
  std::vector<std::string> known = {"--help"}, without_value = known;
  for (const OptionEntry& entry : verb.options.entries()) {
    for (std::string& flag : flags_of(entry, verb.options)) {
      if (entry.kind == OptionEntry::Kind::boolean) without_value.push_back(flag);
      known.push_back(std::move(flag));
    }
  }
  std::vector<std::string> result;
  bool only_arguments = false;
  for (const std::string& word : words) {
    const bool is_flag = !only_arguments && word.size() > 1 && word[0] == '-' && !is_number(word);
    if (!is_flag || word == "-h") {
      result.push_back(word);
      continue;
    }
    only_arguments = word == "--";
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string flag = dashed(word.substr(0, equals));
    if (!only_arguments && std::find(known.begin(), known.end(), flag) == known.end()) {
      // A single letter is near to everything.
      std::erase_if(known, [](const std::string& name) { return name.size() <= std::size("--n") - 1; });
      const std::string familiar = familiar_name(flag, known);
      const std::string nearest = familiar.empty() ? nearest_word(flag, known) : familiar;
      throw UsageError(fmt::format("unknown flag {}; {}", word.substr(0, equals),
                                   nearest.empty() ? fmt::format("nrec {} --help lists them", verb.name)
                                                   : fmt::format("did you mean {}?", nearest)));
    }
    // CLI11 would take the next word for the value of "--flag=".
    const bool is_empty = equals + 1 == word.size();
    if (is_empty && std::ranges::find(without_value, flag) != without_value.end())
      throw UsageError(
          fmt::format("{} has no value behind its =; leave the = out, or write true or false", word));
    result.push_back(is_empty ? flag : flag + word.substr(equals));
    if (is_empty) result.emplace_back();
  }
  return result;
}

void check_count(const std::vector<std::string>& arguments, const VerbSyntax& verb) {
  const auto required = static_cast<std::size_t>(std::count_if(verb.arguments.begin(), verb.arguments.end(),
                                                               [](const Argument& a) { return a.required; }));
  if (arguments.size() < required) {
    throw UsageError(fmt::format("{} is missing ({}); nrec {} --help shows how it is called",
                                 verb.arguments[arguments.size()].name, verb.arguments[arguments.size()].help,
                                 verb.name));
  }
  if (arguments.size() > verb.arguments.size()) {
    throw UsageError(fmt::format("\"{}\" is one argument too many; nrec {} --help shows how it is called",
                                 arguments[verb.arguments.size()], verb.name));
  }
}

}  // namespace

std::vector<std::string> flags_of(const OptionEntry& entry, const OptionTable& table) {
  const auto is_shared = [&](const std::string& name) {
    return std::any_of(table.entries().begin(), table.entries().end(), [&](const OptionEntry& other) {
      return other.section != entry.section && other.name == name;
    });
  };
  std::vector<std::string> flags;
  for (const std::string& alias : entry.aliases) {
    // An alias called like its section ("observation" for its file) says more than the key alone.
    if (alias == entry.section) flags.push_back("--" + dashed(alias));
  }
  if (!is_shared(entry.name)) flags.push_back("--" + dashed(entry.name));
  if (!entry.section.empty()) flags.push_back("--" + dashed(entry.section) + "." + dashed(entry.name));
  for (const std::string& alias : entry.aliases) {
    if (alias == entry.section || is_shared(alias)) continue;
    flags.push_back("--" + dashed(alias));
    if (alias.size() == 1) flags.push_back("-" + alias);
  }
  return flags;
}

ParsedLine parse_command_line(std::span<const std::string> words, const VerbSyntax& verb) {
  std::vector<std::string> reversed = checked_words(words, verb);
  std::reverse(reversed.begin(), reversed.end());  // CLI11 takes them from the back
  CLI::App app;
  app.set_help_flag();
  ParsedLine line;
  app.add_flag("-h,--help", line.help);
  app.add_option("arguments", line.arguments);
  std::vector<CLI::Option*> options;
  for (const OptionEntry& entry : verb.options.entries()) {
    const std::string names = fmt::format("{}", fmt::join(flags_of(entry, verb.options), ","));
    if (entry.kind == OptionEntry::Kind::boolean) {
      options.push_back(app.add_flag(names));
    } else {
      options.push_back(app.add_option(names));
      // Two of them are refused below, in words of our own.
      options.back()->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
  }
  try {
    app.parse(reversed);
  } catch (const CLI::ArgumentMismatch& error) {  // "--seed: 1 required  missing"
    const std::string text = error.what();
    throw UsageError(text.substr(0, text.find(':')) + ": its value is missing");
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  if (line.help) return line;
  check_count(line.arguments, verb);
  for (std::size_t i = 0; i < options.size(); ++i) {
    const OptionEntry& entry = verb.options.entries()[i];
    if (options[i]->count() == 0) continue;
    if (options[i]->count() > 1 && entry.kind != OptionEntry::Kind::text_list)
      throw UsageError(fmt::format("{} is given twice; keep one", flags_of(entry, verb.options).front()));
    line.flags.push_back(
        {entry.section, entry.name, options[i]->results(), flags_of(entry, verb.options).front()});
  }
  return line;
}

}  // namespace nrec::app
