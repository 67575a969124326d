#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace nrec {

/// One value of a Record.
using RecordValue = std::variant<bool, std::int64_t, double, std::string, std::vector<double>,
                                 std::vector<std::int64_t>, std::vector<std::string>>;

/// Flat, ordered list of name -> value: what a run says about itself, for JSON, tables and reports.
/// Names are dotted words, "training.best_epoch". Setting a name again replaces its value in place.
class Record {
 public:
  /// Version of the vocabulary; raised when a name changes its meaning.
  static constexpr int kSchemaVersion = 1;

  void set(std::string_view name, RecordValue value);
  // One overload per accepted kind, so that a literal never becomes a bool by accident.
  void set(std::string_view name, const char* value) { set(name, RecordValue(std::string(value))); }
  void set(std::string_view name, const std::string& value) { set(name, RecordValue(value)); }
  void set(std::string_view name, std::string_view value) { set(name, RecordValue(std::string(value))); }
  void set(std::string_view name, int value) { set(name, RecordValue(static_cast<std::int64_t>(value))); }
  void set(std::string_view name, std::size_t value) {
    set(name, RecordValue(static_cast<std::int64_t>(value)));
  }
  void set(std::string_view name, bool value) { set(name, RecordValue(value)); }
  void set(std::string_view name, double value) { set(name, RecordValue(value)); }

  const RecordValue* find(std::string_view name) const;
  /// Adds every entry of `other`, each name prefixed with `prefix`.
  void merge(std::string_view prefix, const Record& other);
  const std::vector<std::pair<std::string, RecordValue>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, RecordValue>> entries_;
};

}  // namespace nrec
