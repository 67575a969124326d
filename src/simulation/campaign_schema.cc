#include "simulation/campaign_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"

namespace nrec::simulation {
namespace {

using Json = nlohmann::json;

// x stands last: who reads only the columns before it never touches its pages.
constexpr const char* kTables =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE rows (row INTEGER PRIMARY KEY, status INTEGER NOT NULL, attempts INTEGER NOT NULL,"
    " seconds REAL NOT NULL, theta BLOB NOT NULL, reason TEXT NOT NULL, messages TEXT NOT NULL, x BLOB);";
constexpr const char* kNumChanges = "num_identity_changes";

void put(Database& database, std::string_view key, std::string_view value) {
  Statement(database, "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)")
      .bind(1, key)
      .bind(2, value)
      .run();
}

std::string get(Database& database, std::string_view key) {
  Statement statement(database, "SELECT value FROM meta WHERE key = ?");
  statement.bind(1, key);
  if (!statement.step()) {
    throw_damaged(database.path(), fmt::format("\"{}\" is missing in its table meta", key));
  }
  return std::string(statement.text(0));
}

[[noreturn]] void throw_wrong_value(const Database& database, std::string_view key, std::string_view value) {
  throw_damaged(database.path(), fmt::format("\"{}\" in its table meta is {}", key, one_line_text(value)));
}

std::string list_to_json(const std::vector<std::string>& texts, std::string_view what) {
  try {
    return Json(texts).dump();
  } catch (const Json::exception&) {
    throw ConfigError(fmt::format("campaign: {} holds a text that is not UTF-8; write it in UTF-8", what));
  }
}

template <class T>
std::vector<T> list_from_json(Database& database, std::string_view key) {
  const std::string text = get(database, key);
  const Json list = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) throw_wrong_value(database, key, text);
  std::vector<T> items;
  for (const Json& item : list) {
    if (std::is_same_v<T, std::string> ? !item.is_string() : !item.is_number_unsigned()) {
      throw_wrong_value(database, key, text);
    }
    items.push_back(item.get<T>());
  }
  return items;
}

std::uint64_t number(Database& database, std::string_view key) {
  const std::string text = get(database, key);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) throw_wrong_value(database, key, text);
  return value;
}

void put_identity(Database& database, const CampaignIdentity& identity) {
  put(database, "seed", std::to_string(identity.seed));
  put(database, "parameter_names", list_to_json(identity.parameter_names, "the list of parameters"));
  put(database, "prior", list_to_json(identity.prior, "the prior"));
  put(database, "simulator", identity.simulator);
  put(database, "simulator_hash", identity.simulator_hash);
  put(database, "x_shape", Json(identity.x_shape).dump());
}

}  // namespace

void check_header(const DatabaseHeader& header, const std::filesystem::path& path) {
  if (!header.is_sqlite) {
    throw DatabaseError(path, DatabaseTrouble::other,
                        "is not an SQLite database, or its first bytes are damaged",
                        "move it out of the folder of the campaign, or put a copy of it back");
  }
  if (header.application_id != kApplicationId) {
    throw DatabaseError(path, DatabaseTrouble::other,
                        fmt::format("is an SQLite database of another program (application_id {}, not {})",
                                    header.application_id, kApplicationId),
                        "move it out of the folder of the campaign");
  }
  if (header.schema_version > kSchemaVersion) {
    throw DatabaseError(path, DatabaseTrouble::other,
                        fmt::format("was written by a newer nrec (schema version {}, this one knows {})",
                                    header.schema_version, kSchemaVersion),
                        "use that version or a later one");
  }
  if (header.schema_version < 1) {
    throw_damaged(path, fmt::format("schema version {}", header.schema_version));
  }
}

void make_schema(Database& database, const CampaignIdentity& identity, Shard shard) {
  database.run(
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId, kSchemaVersion)
          .c_str());
  database.run(kTables);
  put_identity(database, identity);
  put(database, "shard", fmt::format("{} of {}", shard.index + 1, shard.count));
  put(database, kNumChanges, "0");
}

bool has_schema(Database& database) { return database.integer("SELECT count(*) FROM sqlite_schema") > 0; }

std::uint64_t count_rows(Database& database) {
  return static_cast<std::uint64_t>(database.integer("SELECT count(*) FROM rows"));
}

CampaignIdentity read_identity(Database& database) {
  CampaignIdentity identity;
  identity.seed = number(database, "seed");
  identity.parameter_names = list_from_json<std::string>(database, "parameter_names");
  for (const std::string& name : identity.parameter_names) {
    if (has_control_character(name)) {
      throw IoError(
          fmt::format("{}: its parameter {} holds a control character; rename the parameter and simulate in "
                      "another folder",
                      database.path().string(), quoted_text(name)));
    }
  }
  identity.prior = list_from_json<std::string>(database, "prior");
  identity.simulator = get(database, "simulator");
  identity.simulator_hash = get(database, "simulator_hash");
  identity.x_shape = list_from_json<std::size_t>(database, "x_shape");
  const auto most = database.longest_value() / sizeof(double);
  if (identity.dim_theta() == 0 || identity.dim_theta() > most) {
    throw_wrong_value(database, "parameter_names", fmt::format("a list of {}", identity.dim_theta()));
  }
  try {
    if (identity.dim_x() == 0 || identity.dim_x() > most) {
      throw_wrong_value(database, "x_shape", get(database, "x_shape"));
    }
  } catch (const ShapeError&) {
    throw_wrong_value(database, "x_shape", get(database, "x_shape"));
  }
  return identity;
}

void change_identity(Database& database, const CampaignIdentity& identity,
                     const std::vector<std::string>& changes) {
  const std::uint64_t change = num_identity_changes(database) + 1;
  put_identity(database, identity);
  put(database, kNumChanges, std::to_string(change));
  put(database, fmt::format("identity_change_{}", change), sentences_text(changes));
}

std::uint64_t num_identity_changes(Database& database) { return number(database, kNumChanges); }

std::string sentences_text(const std::vector<std::string>& sentences) {
  return fmt::format("{}", fmt::join(sentences, "; "));
}

}  // namespace nrec::simulation
