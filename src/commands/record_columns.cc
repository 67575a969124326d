#include "commands/record_columns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace nrec {

namespace {

/// The values of `name` in every row; `convert` turns a value into a T, and a null pointer into what stands for none.
template <typename T, typename Convert>
std::vector<T> column(std::span<const Record> rows, const std::string& name, Convert convert) {
  std::vector<T> values;
  for (const Record& row : rows) values.push_back(convert(row.find(name)));
  return values;
}

RecordValue whole_numbers(std::span<const Record> rows, const std::string& name) {
  return column<std::int64_t>(rows, name, [](const RecordValue* value) {
    if (const auto* truth = value ? std::get_if<bool>(value) : nullptr) return std::int64_t{*truth};
    const auto* number = value ? std::get_if<std::int64_t>(value) : nullptr;
    return number ? *number : std::int64_t{-1};
  });
}

RecordValue real_numbers(std::span<const Record> rows, const std::string& name) {
  return column<double>(rows, name, [](const RecordValue* value) {
    const auto* number = value ? std::get_if<double>(value) : nullptr;
    return number ? *number : std::numeric_limits<double>::quiet_NaN();
  });
}

RecordValue texts(std::span<const Record> rows, const std::string& name) {
  return column<std::string>(rows, name, [](const RecordValue* value) {
    const auto* text = value ? std::get_if<std::string>(value) : nullptr;
    return text ? *text : std::string();
  });
}

RecordValue lists(std::span<const Record> rows, const std::string& name, std::size_t length) {
  std::vector<double> values;
  for (const Record& row : rows) {
    const RecordValue* value = row.find(name);
    const auto* list = value ? std::get_if<std::vector<double>>(value) : nullptr;
    for (std::size_t i = 0; i < length; ++i)
      values.push_back(list && i < list->size() ? (*list)[i] : std::numeric_limits<double>::quiet_NaN());
  }
  return values;
}

}  // namespace

Record record_columns(std::span<const Record> rows) {
  Record columns;
  for (const Record& row : rows) {
    for (const auto& [name, value] : row.entries()) {
      if (columns.find(name)) continue;
      if (std::holds_alternative<bool>(value) || std::holds_alternative<std::int64_t>(value)) {
        columns.set(name, whole_numbers(rows, name));
      } else if (std::holds_alternative<double>(value)) {
        columns.set(name, real_numbers(rows, name));
      } else if (std::holds_alternative<std::string>(value)) {
        columns.set(name, texts(rows, name));
      } else if (const auto* list = std::get_if<std::vector<double>>(&value)) {
        columns.set(name, lists(rows, name, list->size()));
      }
    }
  }
  return columns;
}

Record record_row(const Record& columns, std::size_t row, std::size_t count,
                  std::span<const std::string_view> lists) {
  Record result;
  for (const auto& [name, value] : columns.entries()) {
    if (const auto* whole = std::get_if<std::vector<std::int64_t>>(&value)) {
      if (whole->size() == count && (*whole)[row] >= 0) result.set(name, RecordValue((*whole)[row]));
    } else if (const auto* text = std::get_if<std::vector<std::string>>(&value)) {
      if (text->size() == count && !(*text)[row].empty()) result.set(name, (*text)[row]);
    } else if (const auto* real = std::get_if<std::vector<double>>(&value)) {
      if (real->size() % count != 0) continue;
      const std::size_t length = real->size() / count;
      const auto first = real->begin() + static_cast<std::ptrdiff_t>(row * length);
      const std::vector<double> part(first, first + static_cast<std::ptrdiff_t>(length));
      if (std::ranges::all_of(part, [](double v) { return std::isnan(v); })) continue;
      const bool is_list = length > 1 || std::ranges::find(lists, name) != lists.end();
      result.set(name, is_list ? RecordValue(part) : RecordValue(part[0]));
    }
  }
  return result;
}

}  // namespace nrec
