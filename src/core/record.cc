#include "nrec/core/record.h"

#include <algorithm>

namespace nrec {

void Record::set(std::string_view name, RecordValue value) {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry.first == name; });
  if (found != entries_.end()) {
    found->second = std::move(value);
  } else {
    entries_.emplace_back(std::string(name), std::move(value));
  }
}

const RecordValue* Record::find(std::string_view name) const {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry.first == name; });
  return found == entries_.end() ? nullptr : &found->second;
}

void Record::merge(std::string_view prefix, const Record& other) {
  for (const auto& [name, value] : other.entries()) set(std::string(prefix) + name, value);
}

}  // namespace nrec
