#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nrec {

/// A value on its way into an option, from a file or a flag.
using OptionValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>>;

/// Allowed interval of a number; an open end excludes the bound itself.
struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;
  bool contains(double value) const;  // false for nan
  std::string text() const;           // "> 0", "in [0, 1)", ">= 1"
};

/// One option of a program: the same words serve the problem file, the command line and the record.
struct OptionEntry {
  enum class Kind { boolean, integer, real, text, text_list };

  std::string section;               // table of the problem file, e.g. "training"
  std::string name;                  // snake_case; on the command line dashes and underscores are equal
  std::vector<std::string> aliases;  // e.g. "K" for num_classes
  Kind kind = Kind::text;
  std::string help;
  Interval interval;                 // of integer and real
  std::vector<std::string> choices;  // of text; empty = any
  std::string default_text;

  std::function<void(const OptionValue&)> assign;  // typed and already checked
  std::function<OptionValue()> current;

  std::string rule_text() const;  // "integer >= 1", "one of batch | layer | none"
};

/// The table of all options of a set of Options structs. It is bound to the structs it was built from, which must
/// outlive it; their present values are the defaults.
class OptionTable {
 public:
  OptionEntry& add(std::string_view section, std::string_view name, bool* target, std::string_view help);
  OptionEntry& add(std::string_view section, std::string_view name, int* target, Interval interval,
                   std::string_view help);
  OptionEntry& add(std::string_view section, std::string_view name, std::int64_t* target, Interval interval,
                   std::string_view help);
  OptionEntry& add(std::string_view section, std::string_view name, std::uint64_t* target, Interval interval,
                   std::string_view help);
  OptionEntry& add(std::string_view section, std::string_view name, double* target, Interval interval,
                   std::string_view help);
  OptionEntry& add(std::string_view section, std::string_view name, std::string* target,
                   std::vector<std::string> choices, std::string_view help);
  OptionEntry& add(std::string_view section, std::string_view name, std::vector<std::string>* target,
                   std::string_view help);

  /// Entry of `section` called `name` (or one of its aliases; dashes = underscores); nullptr if unknown.
  const OptionEntry* find(std::string_view section, std::string_view name) const;
  const std::vector<OptionEntry>& entries() const { return entries_; }

  /// Checks and stores a value. `where` starts the message ("problem.toml: [training]" or "--gamma").
  /// Errors: ConfigError: unknown name (with the nearest known one), wrong type, out of range, not a choice.
  void set(std::string_view section, std::string_view name, const OptionValue& value,
           std::string_view where) const;
  /// The same from the text of a command-line flag.
  void set_from_text(std::string_view section, std::string_view name, std::string_view text,
                     std::string_view where) const;

  /// Names of a section (without aliases), for suggestions and help.
  std::vector<std::string> names(std::string_view section) const;

 private:
  OptionEntry& push(std::string_view section, std::string_view name, OptionEntry::Kind kind,
                    std::string_view help);
  std::vector<OptionEntry> entries_;
};

/// Shortest text that reads back as the same double ("inf", "nan" included), locale-free.
std::string number_text(double value);
/// Text of a value as a problem file would hold it.
std::string option_value_text(const OptionValue& value);

}  // namespace nrec
