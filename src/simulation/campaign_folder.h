#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nrec/simulation/campaign_store.h"
#include "simulation/campaign_database.h"

// The databases of a campaign's folder, opened for reading.
namespace nrec::simulation {

// A flag of the command line that texts name.
inline constexpr const char* kAcceptFlag = "`nrec simulate --accept-changes`";

// "rows-1-of-4.sqlite"
std::string database_name(Shard shard);
// All files of a folder that are named rows-*.sqlite, by name. Errors   IoError: the folder cannot be read
std::vector<std::filesystem::path> database_files(const std::filesystem::path& folder);

// A database and what it says it belongs to. A read transaction is open: everything read is of one moment, and no writer
// can start before the connection is closed.
struct OpenDatabase {
  Database database;
  CampaignIdentity identity;
};

// A database that a writer holds. The identity is read past its lock; nothing when that was not possible.
struct WriterDatabase {
  std::filesystem::path path;
  std::optional<CampaignIdentity> identity;
};

struct OpenFolder {
  std::vector<OpenDatabase> readable;
  std::vector<WriterDatabase> being_written;
};

// Whether a file with the name of the database and that suffix stands beside it: "-wal" is its log, "-journal" undoes
// what was begun without one.
bool has_companion(const std::filesystem::path& path, const char* suffix);
// A writer that did not end by itself has left a log or a journal beside the database.
bool was_left_by_a_writer(const std::filesystem::path& path);
// Moves the log into the database, after which anyone can read it; needs an exclusive lock. A database that is not a
// campaign's is left as it is.
void end_log(Database& database);

// Opens one database. What a killed writer left is put in order first. Nothing: it is empty, its writer was killed or
// stopped before it had made it.
// Errors   DatabaseError: trouble busy when a writer holds it; damaged, foreign, newer
std::optional<OpenDatabase> open_database(const std::filesystem::path& path);

// Opens them one after the other and hands them over; a locked one is tried again for a fifth of a second before it
// counts as being written. What is not kept is closed at once: there may be more databases than files may be open.
void visit_databases(const std::vector<std::filesystem::path>& files,
                     const std::function<void(OpenDatabase&&)>& visit_readable,
                     const std::function<void(WriterDatabase&&)>& visit_being_written);
// All of them, by name.
OpenFolder open_databases(const std::vector<std::filesystem::path>& files);

}  // namespace nrec::simulation
