#include "simulation/external/number_text.h"

#include <fmt/format.h>
#include <locale.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <system_error>

#include "nrec/core/printable_text.h"
#include "simulation/external/message_tail.h"

namespace nrec::simulation {
namespace {

constexpr std::string_view kBlanks = " \t\n\r\v\f";

bool is_blank(char letter) { return kBlanks.find(letter) != std::string_view::npos; }

// A decimal too large or too small for from_chars to name: infinity, zero or the nearest denormal.
double extreme_number(const std::string& word) {
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  return strtod_l(word.c_str(), nullptr, c_locale);
}

bool read_number(std::string_view word, double& value) {
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size() || code == std::errc::invalid_argument) return false;
  if (code == std::errc::result_out_of_range) value = extreme_number(std::string(word));
  return true;
}

std::string problem_of(std::string_view word, std::size_t numbers_before) {
  if (word.find(',') != std::string_view::npos &&
      word.find_first_not_of("0123456789+-.,eE") == std::string_view::npos) {
    return fmt::format(
        "{} has a comma; numbers have a decimal point (LC_NUMERIC=C gives one) and blanks between them",
        quoted_excerpt(word));
  }
  return fmt::format("text {} after {} number{}; x must be numbers only, other words belong on stderr",
                     quoted_excerpt(word), numbers_before, numbers_before == 1 ? "" : "s");
}

}  // namespace

void append_number(std::string& text, double value) {
  std::array<char, 32> letters;  // 24 are needed at most: -2.2250738585072014e-308
  const auto result = std::to_chars(letters.data(), letters.data() + letters.size(), value);
  text.append(letters.data(), result.ptr);
}

void append_numbers(std::string& text, std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ' ';
    append_number(text, values[i]);
  }
}

std::string_view next_word(std::string_view& text) {
  std::size_t start = 0;
  while (start < text.size() && is_blank(text[start])) ++start;
  std::size_t end = start;
  while (end < text.size() && !is_blank(text[end])) ++end;
  const std::string_view word = text.substr(start, end - start);
  text.remove_prefix(end);
  return word;
}

std::string read_numbers(std::string_view text, std::vector<double>& values) {
  values.clear();
  for (std::string_view word = next_word(text); !word.empty(); word = next_word(text)) {
    double value = 0.0;
    if (!read_number(word, value)) return problem_of(word, values.size());
    values.push_back(value);
  }
  return "";
}

}  // namespace nrec::simulation
