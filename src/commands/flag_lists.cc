#include "commands/flag_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "nrec/core/error.h"
#include "nrec/core/suggest.h"
#include "nrec/tasks/task.h"

namespace nrec {

namespace {

constexpr std::int64_t kLongestRange = 1'000'000;

std::optional<double> number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A whole number in [low, high]; "1e4" is one, too.
std::optional<std::int64_t> whole_number(std::string_view text, double low, double high) {
  const std::optional<double> value = number(text);
  if (!value || !(*value >= low && *value <= high) || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

template <class T>
void add_once(std::vector<T>& list, const T& value, std::string_view flag) {
  if (std::find(list.begin(), list.end(), value) != list.end())
    throw UsageError(fmt::format("{}: {} is given twice; leave one out", flag, value));
  list.push_back(value);
}

}  // namespace

std::vector<std::int64_t> whole_numbers(std::string_view flag, const std::vector<std::string>& words,
                                        double low, double high) {
  std::vector<std::int64_t> list;
  for (const std::string& word : words) {
    // Not the dash of an exponent, 1e-3, and not that of a negative number.
    const std::size_t dash = word.find('-', 1);
    const bool is_range = dash != std::string::npos && word[dash - 1] != 'e';
    const auto first = whole_number(word.substr(0, is_range ? dash : word.size()), low, high);
    const auto last = is_range ? whole_number(word.substr(dash + 1), low, high) : first;
    if (!first || !last || *last < *first || *last - *first > kLongestRange) {
      throw UsageError(fmt::format(
          "{}: \"{}\" must be a whole number from {:.0f} to {:.0f}, or a range of them such as 1-5", flag,
          word, low, high));
    }
    for (std::int64_t value = *first; value <= *last; ++value) add_once(list, value, flag);
  }
  if (list.empty())
    throw UsageError(fmt::format("{}: no number is given; give one, or several: 1,2,5-7", flag));
  return list;
}

std::vector<double> positive_numbers(std::string_view flag, const std::vector<std::string>& words) {
  std::vector<double> list;
  for (const std::string& word : words) {
    const std::optional<double> value = number(word);
    if (!value || !(*value > 0) || !std::isfinite(*value))
      throw UsageError(fmt::format("{}: \"{}\" must be a number > 0", flag, word));
    add_once(list, *value, flag);
  }
  if (list.empty())
    throw UsageError(fmt::format("{}: no number is given; give one, or several: 0.1,1,10", flag));
  return list;
}

std::vector<std::string> known_words(std::string_view flag, const std::vector<std::string>& words,
                                     std::span<const std::string> known) {
  std::vector<std::string> list;
  for (const std::string& word : words) {
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      const std::string nearest = nearest_word(word, {known.begin(), known.end()});
      throw UsageError(fmt::format("{}: \"{}\" is unknown; it must be one of {}{}", flag, word,
                                   fmt::join(known, ", "),
                                   nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest)));
    }
    add_once(list, word, flag);
  }
  if (list.empty())
    throw UsageError(
        fmt::format("{}: none is given; give one or several of {}", flag, fmt::join(known, ", ")));
  return list;
}

std::vector<std::string> task_list(const std::vector<std::string>& words) {
  if (words.empty())
    throw UsageError("--tasks is missing; name tasks, --tasks two_moons,slcp, or --tasks all");
  if (words.size() == 1 && words[0] == "all") return task_names();
  std::vector<std::string> list;
  for (const std::string& word : words) {
    make_task(word);  // refuses unknown names
    add_once(list, word, "--tasks");
  }
  return list;
}

}  // namespace nrec
