#include "nrec/io/toml.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"
#include "nrec/io/file.h"

namespace nrec {

namespace {

struct Entry {
  toml::source_position position;
  std::string name;
  const toml::node* node;
};

bool before(const Entry& a, const Entry& b) {
  return a.position.line != b.position.line ? a.position.line < b.position.line
                                            : a.position.column < b.position.column;
}

TomlValue converted(const toml::node& node, std::string_view where);

// The parser sorts keys by name; their places in the text restore the order of the author.
TomlTable converted_table(const toml::table& table, std::string_view where) {
  std::vector<Entry> entries;
  for (const auto& [key, node] : table) {
    const toml::source_position place = key.source().begin;
    if (has_control_character(key.str())) {
      throw ConfigError(fmt::format("{}:{}:{}: the name {} holds a control character; rename it", where,
                                    place.line, place.column, quoted_text(key.str())));
    }
    entries.push_back({place, std::string(key.str()), &node});
  }
  std::stable_sort(entries.begin(), entries.end(), before);
  TomlTable result;
  for (Entry& entry : entries) result.emplace_back(std::move(entry.name), converted(*entry.node, where));
  return result;
}

TomlValue converted(const toml::node& node, std::string_view where) {
  TomlValue result;
  result.line = static_cast<int>(node.source().begin.line);
  result.column = static_cast<int>(node.source().begin.column);
  if (const auto* table = node.as_table()) {
    result.value = converted_table(*table, where);
  } else if (const auto* array = node.as_array()) {
    TomlArray items;
    for (const toml::node& item : *array) items.push_back(converted(item, where));
    result.value = std::move(items);
  } else if (const auto* flag = node.as_boolean()) {
    result.value = flag->get();
  } else if (const auto* whole = node.as_integer()) {
    result.value = whole->get();
  } else if (const auto* real = node.as_floating_point()) {
    result.value = real->get();
  } else if (const auto* text = node.as_string()) {
    result.value = text->get();
  } else {
    throw ConfigError(
        fmt::format("{}:{}:{}: dates and times have no meaning here; write a number, or a text in quotes",
                    where, result.line, result.column));
  }
  return result;
}

// The parser limits the nesting of values but not of dotted keys (a.b.c...), each part of which is one more
// level.
void check_dotted_keys(std::string_view text, std::string_view where) {
  constexpr int kMostDots = 1000;
  int dots = 0, line = 1;
  for (const char c : text) {
    if (c == '\n') ++line;
    if (c == '.') ++dots;
    if (c == '\n' || c == '=' || c == ',' || c == '{' || c == '[') dots = 0;
    if (dots > kMostDots)
      throw ConfigError(
          fmt::format("{}:{}:1: more than {} dots in a row of words; shorten the key or the text", where,
                      line, kMostDots));
  }
}

}  // namespace

const TomlValue* TomlValue::find(std::string_view name) const {
  const auto* table = std::get_if<TomlTable>(&value);
  if (!table) return nullptr;
  const auto found =
      std::find_if(table->begin(), table->end(), [&](const auto& entry) { return entry.first == name; });
  return found == table->end() ? nullptr : &found->second;
}

const char* TomlValue::kind() const {
  constexpr const char* kNames[] = {"boolean", "integer", "number", "text", "list", "table"};
  return kNames[value.index()];
}

TomlValue parse_toml(std::string_view text, std::string_view where) {
  check_dotted_keys(text, where);
  try {
    const toml::table root = toml::parse(text, where);
    TomlValue result = converted(root, where);
    if (result.line == 0) result.line = result.column = 1;
    return result;
  } catch (const toml::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}:{}: {}", where, error.source().begin.line,
                                  error.source().begin.column, error.description()));
  }
}

TomlValue read_toml(const std::filesystem::path& path) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;  // far above any problem file
  return parse_toml(read_file(path, kMostBytes), path.string());
}

std::string toml_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (code < 0x20 || code == 0x7f) {
      quoted += fmt::format("\\u{:04X}", code);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace nrec
