#include "simulation/campaign_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "nrec/core/error.h"
#include "simulation/campaign_folder.h"
#include "simulation/campaign_schema.h"

namespace nrec::simulation {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A reader that puts a database in order holds it for a moment, a reader of many rows for longer; both end by
// themselves.
constexpr milliseconds kWaitForWriters{1000};
constexpr milliseconds kWaitForReaders{3000};
constexpr milliseconds kWaitAtOnce{250};
// Of a new database: four times the usual size writes 1.6 times as many rows per second, with 8 and with 1000 numbers in
// x, and reads them no slower.
constexpr const char* kPageSize = "PRAGMA page_size = 16384";

// So that the folder itself survives a power loss. Where a file system cannot do that, its files still can.
void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

bool is_held_by_readers(const fs::path& path) {
  if (was_left_by_a_writer(path)) return false;  // these files are there while it writes, too
  try {
    Database database(path, DatabaseAccess::read);
    has_schema(database);
    return true;
  } catch (const DatabaseError& error) {
    return error.trouble() != DatabaseTrouble::busy;
  }
}

[[noreturn]] void throw_locked(const fs::path& path, bool by_readers) {
  if (by_readers) {
    throw ConfigError(
        fmt::format("{}: is being read by another process; start again when that has ended", path.string()));
  }
  throw ConfigError(fmt::format(
      "{}: is being written by another process; wait until it has ended or stop it, or give each process a "
      "shard of its own. If there is none, the file system of this folder cannot lock files: choose a folder "
      "on another one",
      path.string()));
}

// Errors   DatabaseError: trouble busy when the lock cannot be had now
Database try_to_lock(const fs::path& path) {
  Database database(path, DatabaseAccess::create);
  if (database.is_read_only()) {
    throw DatabaseError(path, DatabaseTrouble::read_only, "may not be written",
                        "allow writing (chmod u+w) of it, or choose another folder");
  }
  if (!was_left_by_a_writer(path)) {  // a file that is not ours stays as it is
    if (const auto header = database.header()) check_header(*header, path);
  }
  database.wait_for_locks(kWaitAtOnce);
  // Exclusive before the first access (already the next pragma is one): no shared memory is used, which network file
  // systems do not have. In this mode the lock stays when the transaction ends.
  database.run("PRAGMA locking_mode = EXCLUSIVE");
  // The tables are made with a journal, whose removal must last: if it came back after a power loss, it would undo them.
  database.run("PRAGMA synchronous = EXTRA");
  database.run(kPageSize);
  database.run("BEGIN EXCLUSIVE; ROLLBACK");
  end_log(database);
  if (const auto header = database.header()) check_header(*header, path);
  return database;
}

// Rows of another size cannot stand beside new ones, whatever the user says.
void check_sizes(const fs::path& path, const CampaignIdentity& stored, const CampaignIdentity& wanted,
                 std::uint64_t num_rows) {
  if (num_rows == 0) return;
  if (stored.dim_theta() == wanted.dim_theta() && stored.dim_x() == wanted.dim_x()) return;
  throw ConfigError(fmt::format(
      "{}: its {} rows have {} parameters and {} numbers in x, new ones would have "
      "{} and {}; choose another folder",
      path.string(), num_rows, stored.dim_theta(), stored.dim_x(), wanted.dim_theta(), wanted.dim_x()));
}

[[noreturn]] void refuse_change(const fs::path& path, const std::vector<std::string>& changes,
                                std::uint64_t num_rows) {
  throw ConfigError(
      fmt::format("{}: its {} rows were simulated for another problem: {}. Undo the change, or "
                  "choose another folder; if these rows and new ones may be mixed, go on with {}",
                  path.string(), num_rows, sentences_text(changes), kAcceptFlag));
}

}  // namespace

void make_campaign_folder(const fs::path& folder) {
  std::vector<fs::path> parents;
  const fs::path absolute = fs::absolute(folder);
  std::error_code error;
  for (fs::path path = absolute; path.has_relative_path() && !fs::exists(path, error);) {
    path = path.parent_path();
    parents.push_back(path);
  }
  fs::create_directories(absolute, error);
  if (error || !fs::is_directory(absolute, error)) {
    throw IoError(fmt::format("{}: the folder of the campaign cannot be made: {}; choose another place",
                              folder.string(), error ? error.message() : "a file has this name"));
  }
  for (const fs::path& parent : parents) sync_folder(parent);
}

Database lock_database(const fs::path& path) {
  for (const Clock::time_point start = Clock::now();;) {
    try {
      return try_to_lock(path);
    } catch (const DatabaseError& error) {
      if (error.trouble() != DatabaseTrouble::busy) throw;
    }
    const bool by_readers = is_held_by_readers(path);
    if (Clock::now() - start > (by_readers ? kWaitForReaders : kWaitForWriters))
      throw_locked(path, by_readers);
  }
}

void settle_identity(Database& database, const CampaignIdentity& identity, Shard shard,
                     ChangedCampaign changed) {
  database.run("BEGIN");
  if (!has_schema(database)) {
    make_schema(database, identity, shard);
  } else {
    const CampaignIdentity stored = read_identity(database);
    const std::vector<std::string> changes = differences(stored, identity);
    if (!changes.empty()) {
      const std::uint64_t num_rows = count_rows(database);
      if (changed == ChangedCampaign::refuse) refuse_change(database.path(), changes, num_rows);
      check_sizes(database.path(), stored, identity, num_rows);
      change_identity(database, identity, changes);
    }
  }
  database.run("COMMIT");
}

void check_others(const fs::path& folder, const fs::path& own, const CampaignIdentity& identity) {
  std::vector<fs::path> files = database_files(folder);
  std::erase(files, own);
  visit_databases(
      files,
      [&](OpenDatabase&& other) {
        const std::vector<std::string> changes = differences(other.identity, identity);
        if (!changes.empty()) refuse_change(other.database.path(), changes, count_rows(other.database));
      },
      [&](WriterDatabase&& other) {
        const std::vector<std::string> changes =
            other.identity ? differences(*other.identity, identity) : std::vector<std::string>();
        if (changes.empty()) return;
        throw ConfigError(fmt::format(
            "{}: is being written now for another problem: {}. Undo the change, or choose another folder",
            other.path.string(), sentences_text(changes)));
      });
}

}  // namespace nrec::simulation
