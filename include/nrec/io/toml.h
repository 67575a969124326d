#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace nrec {

struct TomlValue;
using TomlArray = std::vector<TomlValue>;
/// Names and values in the order of the file.
using TomlTable = std::vector<std::pair<std::string, TomlValue>>;

/// A value of a TOML file and where it stands.
struct TomlValue {
  std::variant<bool, std::int64_t, double, std::string, TomlArray, TomlTable> value;
  int line = 0;    // from 1; of a table: its header or brace
  int column = 0;  // from 1

  /// The value called `name` when this is a table that has it, else nullptr.
  const TomlValue* find(std::string_view name) const;
  /// "boolean", "integer", "number", "text", "list", "table": what messages call it.
  const char* kind() const;
};

/// The tree of a TOML file: its root is a table.
///
/// Errors   IoError as read_file; ConfigError "file:line:column: reason": not TOML 1.0, a key twice or with a control
/// character, a date or time
TomlValue read_toml(const std::filesystem::path& path);

/// The same from memory; `where` is the file's name in messages.
TomlValue parse_toml(std::string_view text, std::string_view where);

/// `text` in quotes, escaped so that TOML reads it back.
std::string toml_text(std::string_view text);

}  // namespace nrec
