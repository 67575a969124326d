#include "simulation/external/command_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "nrec/core/error.h"
#include "nrec/core/suggest.h"
#include "simulation/external/number_text.h"

namespace nrec::simulation {
namespace {

constexpr std::array<std::pair<std::string_view, Blank>, 7> kBlanks{
    {{"theta", Blank::theta},
     {"seed", Blank::seed},
     {"row", Blank::row},
     {"theta_file", Blank::theta_file},
     {"theta_file:npy", Blank::theta_file_npy},
     {"x_file", Blank::x_file},
     {"x_file:npy", Blank::x_file_npy}}};
constexpr std::size_t kBlanksOfLines = 3;  // the first ones

// Reads placeholders; `key` is the option that messages name.
class BlankReader {
 public:
  BlankReader(std::string key, std::span<const std::string> parameters, std::size_t num_blanks)
      : key_(std::move(key)), parameters_(parameters), num_blanks_(num_blanks) {}

  // The part that starts with the brace at text[place]; place is moved behind it.
  WordPart read(std::string_view text, std::size_t& place) const {
    const char brace = text[place];
    if (place + 1 < text.size() && text[place + 1] == brace) {
      place += 2;
      return {Blank::literal, std::string(1, brace), 0};
    }
    const std::size_t end = brace == '{' ? text.find('}', place) : std::string_view::npos;
    if (end == std::string_view::npos) {
      throw ConfigError(
          fmt::format("{} = \"{}\": the brace {} at letter {} has no partner; write {}{} for a brace that is "
                      "no placeholder",
                      key_, text, brace, place + 1, brace, brace));
    }
    const std::string name(text.substr(place + 1, end - place - 1));
    place = end + 1;
    return named(name);
  }

 private:
  WordPart named(const std::string& name) const {
    const auto parameter = std::find(parameters_.begin(), parameters_.end(), name);
    const auto known = kBlanks.begin() + static_cast<std::ptrdiff_t>(num_blanks_);
    const auto blank =
        std::find_if(kBlanks.begin(), known, [&](const auto& entry) { return entry.first == name; });
    // With one parameter called theta both meanings are the same number.
    const bool same = name == "theta" && parameters_.size() == 1;
    if (parameter != parameters_.end() && blank != known && !same) {
      throw ConfigError(fmt::format(
          "{}: {{{}}} is a placeholder of its own and the name of a parameter; call the parameter "
          "otherwise",
          key_, name));
    }
    if (blank != known) return {blank->second, "", 0};
    if (parameter == parameters_.end()) throw_unknown(name);
    return {Blank::parameter, "", static_cast<std::size_t>(parameter - parameters_.begin())};
  }

  [[noreturn]] void throw_unknown(const std::string& name) const {
    std::vector<std::string> known(parameters_.begin(), parameters_.end());
    for (std::size_t i = 0; i < num_blanks_; ++i) known.emplace_back(kBlanks[i].first);
    std::string text = fmt::format("{}: unknown placeholder {{{}}}", key_, name);
    const std::string nearest = nearest_word(name, known);
    if (!nearest.empty()) text += fmt::format("; is it {{{}}}?", nearest);
    text += nearest.empty() ? "; known are" : " Known are";
    for (const std::string& word : known) text += fmt::format(" {{{}}}", word);
    throw ConfigError(text + "; {{ and }} stand for braces");
  }

  std::string key_;
  std::span<const std::string> parameters_;
  std::size_t num_blanks_;
};

void append_letter(WordTemplate& word, char letter) {
  if (word.empty() || word.back().kind != Blank::literal) word.push_back({Blank::literal, "", 0});
  word.back().text += letter;
}

void append_part(WordTemplate& word, WordPart part) {
  if (part.kind != Blank::literal) {
    word.push_back(std::move(part));
  } else {
    for (const char letter : part.text) append_letter(word, letter);
  }
}

class CommandSplitter {
 public:
  CommandSplitter(std::string_view text, const BlankReader& blanks) : text_(text), blanks_(blanks) {}

  std::vector<WordTemplate> split() {
    while (place_ < text_.size()) step();
    if (quote_ != '\0')
      throw ConfigError(fmt::format("command = \"{}\": the quote {} is not closed", text_, quote_));
    finish_word();
    if (words_.empty()) throw ConfigError("command: is empty; give the program and its words");
    return std::move(words_);
  }

 private:
  void step() {
    const char letter = text_[place_];
    if (letter == '{' || letter == '}') {
      append_part(word(), blanks_.read(text_, place_));
      return;
    }
    ++place_;
    if (quote_ == '\0' && (letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r')) {
      finish_word();
    } else if (letter == quote_) {
      quote_ = '\0';
    } else if (quote_ == '\0' && (letter == '\'' || letter == '"')) {
      word();  // '' is a word, too
      quote_ = letter;
    } else if (letter == '\\' && quote_ != '\'') {
      append_escaped();
    } else {
      append_letter(word(), letter);
    }
  }
  void append_escaped() {
    if (place_ == text_.size())
      throw ConfigError(fmt::format("command = \"{}\": ends with a backslash; write two for one", text_));
    const char letter = text_[place_++];
    // As in a shell: inside double quotes a backslash is special before " and \ only.
    if (quote_ == '"' && letter != '"' && letter != '\\') append_letter(word(), '\\');
    append_letter(word(), letter);
  }
  WordTemplate& word() {
    if (!word_) word_.emplace();
    return *word_;
  }
  void finish_word() {
    if (word_) words_.push_back(std::move(*word_));
    word_.reset();
  }

  std::string_view text_;
  const BlankReader& blanks_;
  std::size_t place_ = 0;
  char quote_ = '\0';
  std::optional<WordTemplate> word_;
  std::vector<WordTemplate> words_;
};

}  // namespace

std::vector<WordTemplate> split_command(std::string_view command, std::span<const std::string> parameters) {
  const BlankReader blanks("command", parameters, kBlanks.size());
  return CommandSplitter(command, blanks).split();
}

WordTemplate read_line_template(std::string_view line, std::span<const std::string> parameters) {
  const BlankReader blanks("line", parameters, kBlanksOfLines);
  WordTemplate word;
  for (std::size_t place = 0; place < line.size();) {
    if (line[place] == '{' || line[place] == '}') {
      append_part(word, blanks.read(line, place));
    } else {
      append_letter(word, line[place++]);
    }
  }
  return word;
}

bool uses(const WordTemplate& word, Blank kind) {
  return std::any_of(word.begin(), word.end(), [kind](const WordPart& part) { return part.kind == kind; });
}

bool uses(std::span<const WordTemplate> words, Blank kind) {
  return std::any_of(words.begin(), words.end(),
                     [kind](const WordTemplate& word) { return uses(word, kind); });
}

std::vector<std::string> parameters_left_out(std::span<const WordTemplate> words,
                                             std::span<const std::string> parameters) {
  std::vector<std::string> left_out;
  for (const Blank all : {Blank::theta, Blank::theta_file, Blank::theta_file_npy}) {
    if (uses(words, all)) return left_out;
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const bool is_used = std::any_of(words.begin(), words.end(), [i](const WordTemplate& word) {
      return std::any_of(word.begin(), word.end(), [i](const WordPart& part) {
        return part.kind == Blank::parameter && part.parameter == i;
      });
    });
    if (!is_used) left_out.push_back(parameters[i]);
  }
  return left_out;
}

void append_filled(std::string& text, const WordTemplate& word, const BlankValues& values) {
  for (const WordPart& part : word) {
    switch (part.kind) {
      case Blank::literal:
        text += part.text;
        break;
      case Blank::parameter:
        append_number(text, values.theta[part.parameter]);
        break;
      case Blank::theta:
        append_numbers(text, values.theta);
        break;
      case Blank::seed:
        text += std::to_string(values.seed);
        break;
      case Blank::row:
        text += std::to_string(values.row);
        break;
      case Blank::theta_file:
      case Blank::theta_file_npy:
        text += values.theta_file;
        break;
      case Blank::x_file:
      case Blank::x_file_npy:
        text += values.x_file;
        break;
    }
  }
}

}  // namespace nrec::simulation
