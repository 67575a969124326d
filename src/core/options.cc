#include "nrec/core/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"
#include "nrec/core/suggest.h"

namespace nrec {

namespace {

std::string underscored(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '-', '_');
  return result;
}

/// The value as the option's own kind, or nullopt when its type does not fit.
std::optional<OptionValue> converted(const OptionValue& value, OptionEntry::Kind kind) {
  using Kind = OptionEntry::Kind;
  switch (kind) {
    case Kind::boolean:
      if (std::holds_alternative<bool>(value)) return value;
      return std::nullopt;
    case Kind::integer:
      if (std::holds_alternative<std::int64_t>(value)) return value;
      if (const double* real = std::get_if<double>(&value);
          real && std::floor(*real) == *real && std::fabs(*real) < 9e15) {
        return static_cast<std::int64_t>(*real);  // 1e5 is a whole number, too
      }
      return std::nullopt;
    case Kind::real:
      if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
      if (std::holds_alternative<double>(value)) return value;
      return std::nullopt;
    case Kind::text:
      if (std::holds_alternative<std::string>(value)) return value;
      return std::nullopt;
    case Kind::text_list:
      if (std::holds_alternative<std::vector<std::string>>(value)) return value;
      if (const auto* text = std::get_if<std::string>(&value)) return std::vector<std::string>{*text};
      return std::nullopt;
  }
  return std::nullopt;
}

template <class T>
std::optional<T> parsed_number(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

bool Interval::contains(double value) const {
  if (std::isnan(value)) return false;
  const bool above = low_open ? value > low : value >= low;
  const bool below = high_open ? value < high : value <= high;
  return above && below;
}

std::string Interval::text() const {
  const bool has_low = !std::isinf(low);
  const bool has_high = !std::isinf(high);
  if (has_low && has_high)
    return "in " + std::string(low_open ? "(" : "[") + number_text(low) + ", " + number_text(high) +
           (high_open ? ")" : "]");
  if (has_low) return (low_open ? "> " : ">= ") + number_text(low) + (high_open ? " and finite" : "");
  if (has_high) return (high_open ? "< " : "<= ") + number_text(high);
  return high_open ? "finite" : "any";
}

std::string OptionEntry::rule_text() const {
  const std::string range = interval.text();
  switch (kind) {
    case Kind::boolean:
      return "true or false";
    case Kind::integer:
      return "an integer" + (range == "any" ? "" : " " + range);
    case Kind::real:
      return "a number" + (range == "any" ? "" : " " + range);
    case Kind::text_list:
      return "a list of texts";
    case Kind::text:
      break;
  }
  if (choices.empty()) return "a text";
  std::string rule = "one of ";
  for (std::size_t i = 0; i < choices.size(); ++i) rule += (i ? " | " : "") + choices[i];
  return rule;
}

OptionEntry& OptionTable::push(std::string_view section, std::string_view name, OptionEntry::Kind kind,
                               std::string_view help) {
  OptionEntry entry;
  entry.section = section;
  entry.name = name;
  entry.kind = kind;
  entry.help = help;
  entries_.push_back(std::move(entry));
  return entries_.back();
}

namespace {

template <class Stored, class T>
void bind(OptionEntry& entry, T* target) {
  entry.assign = [target](const OptionValue& value) { *target = static_cast<T>(std::get<Stored>(value)); };
  entry.current = [target] { return OptionValue(static_cast<Stored>(*target)); };
  entry.default_text = option_value_text(entry.current());
}

}  // namespace

OptionEntry& OptionTable::add(std::string_view section, std::string_view name, bool* target,
                              std::string_view help) {
  OptionEntry& entry = push(section, name, OptionEntry::Kind::boolean, help);
  bind<bool>(entry, target);
  return entry;
}

OptionEntry& OptionTable::add(std::string_view section, std::string_view name, int* target, Interval interval,
                              std::string_view help) {
  OptionEntry& entry = push(section, name, OptionEntry::Kind::integer, help);
  entry.interval = interval;
  entry.interval.high = std::min(interval.high, static_cast<double>(std::numeric_limits<int>::max()));
  bind<std::int64_t>(entry, target);
  return entry;
}

OptionEntry& OptionTable::add(std::string_view section, std::string_view name, std::int64_t* target,
                              Interval interval, std::string_view help) {
  OptionEntry& entry = push(section, name, OptionEntry::Kind::integer, help);
  entry.interval = interval;
  bind<std::int64_t>(entry, target);
  return entry;
}

OptionEntry& OptionTable::add(std::string_view section, std::string_view name, std::uint64_t* target,
                              Interval interval, std::string_view help) {
  OptionEntry& entry = push(section, name, OptionEntry::Kind::integer, help);
  entry.interval = interval;
  entry.interval.low = std::max(0.0, interval.low);
  bind<std::int64_t>(entry, target);
  return entry;
}

OptionEntry& OptionTable::add(std::string_view section, std::string_view name, double* target,
                              Interval interval, std::string_view help) {
  OptionEntry& entry = push(section, name, OptionEntry::Kind::real, help);
  entry.interval = interval;
  bind<double>(entry, target);
  return entry;
}

OptionEntry& OptionTable::add(std::string_view section, std::string_view name, std::string* target,
                              std::vector<std::string> choices, std::string_view help) {
  OptionEntry& entry = push(section, name, OptionEntry::Kind::text, help);
  entry.choices = std::move(choices);
  bind<std::string>(entry, target);
  return entry;
}

OptionEntry& OptionTable::add(std::string_view section, std::string_view name,
                              std::vector<std::string>* target, std::string_view help) {
  OptionEntry& entry = push(section, name, OptionEntry::Kind::text_list, help);
  bind<std::vector<std::string>>(entry, target);
  return entry;
}

const OptionEntry* OptionTable::find(std::string_view section, std::string_view name) const {
  const std::string wanted = underscored(name);
  for (const OptionEntry& entry : entries_) {
    if (entry.section != section) continue;
    if (entry.name == wanted ||
        std::find(entry.aliases.begin(), entry.aliases.end(), wanted) != entry.aliases.end())
      return &entry;
  }
  return nullptr;
}

std::vector<std::string> OptionTable::names(std::string_view section) const {
  std::vector<std::string> result;
  for (const OptionEntry& entry : entries_) {
    if (entry.section == section) result.push_back(entry.name);
  }
  return result;
}

void OptionTable::set(std::string_view section, std::string_view name, const OptionValue& value,
                      std::string_view where) const {
  const OptionEntry* entry = find(section, name);
  const std::string start = std::string(where) + ": ";
  if (!entry) {
    const std::string nearest = nearest_word(name, names(section));
    throw ConfigError(start + "unknown key " + quoted_text(name) +
                      (nearest.empty() ? "" : "; did you mean " + quoted_text(nearest) + "?"));
  }
  const std::string shown = entry->name + " = " + option_value_text(value);
  const std::optional<OptionValue> typed = converted(value, entry->kind);
  if (!typed) throw ConfigError(start + shown + " must be " + entry->rule_text());
  if (entry->kind == OptionEntry::Kind::integer || entry->kind == OptionEntry::Kind::real) {
    const double number = entry->kind == OptionEntry::Kind::real
                              ? std::get<double>(*typed)
                              : static_cast<double>(std::get<std::int64_t>(*typed));
    if (!entry->interval.contains(number))
      throw ConfigError(start + shown + " must be " + entry->rule_text());
  }
  if (!entry->choices.empty()) {
    const std::string& text = std::get<std::string>(*typed);
    if (std::find(entry->choices.begin(), entry->choices.end(), text) == entry->choices.end()) {
      const std::string nearest = nearest_word(text, entry->choices);
      throw ConfigError(start + shown + " must be " + entry->rule_text() +
                        (nearest.empty() ? "" : "; did you mean " + quoted_text(nearest) + "?"));
    }
  }
  entry->assign(*typed);
}

void OptionTable::set_from_text(std::string_view section, std::string_view name, std::string_view text,
                                std::string_view where) const {
  const OptionEntry* entry = find(section, name);
  OptionValue value = std::string(text);
  if (entry && entry->kind == OptionEntry::Kind::boolean) {
    if (text == "true" || text == "yes" || text == "on" || text == "1") value = true;
    if (text == "false" || text == "no" || text == "off" || text == "0") value = false;
  } else if (entry && (entry->kind == OptionEntry::Kind::integer || entry->kind == OptionEntry::Kind::real)) {
    if (const auto whole = parsed_number<std::int64_t>(text)) {
      value = *whole;
    } else if (const auto real = parsed_number<double>(text)) {
      value = *real;
    }
  } else if (entry && entry->kind == OptionEntry::Kind::text_list) {
    std::vector<std::string> parts;
    for (std::size_t start = 0; start <= text.size();) {
      const std::size_t comma = std::min(text.find(',', start), text.size());
      if (comma > start) parts.emplace_back(text.substr(start, comma - start));
      start = comma + 1;
    }
    if (parts.empty())
      throw ConfigError(std::string(where) + ": " + quoted_text(text) +
                        " names nothing; give one or several, with commas between them, or leave it out");
    value = std::move(parts);
  }
  set(section, name, value, where);
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, result.ptr};
}

std::string option_value_text(const OptionValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const double* real = std::get_if<double>(&value)) return number_text(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return quoted_text(*text);
  std::string list = "[";
  for (const std::string& item : std::get<std::vector<std::string>>(value))
    list += (list.size() > 1 ? ", " : "") + quoted_text(item);
  return list + "]";
}

}  // namespace nrec
