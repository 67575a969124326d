#include "simulation/campaign_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "simulation/campaign_schema.h"

namespace nrec::simulation {
namespace {

namespace fs = std::filesystem;

// Locks of other readers that put a database in order are short; a writer's is not.
constexpr int kLockAttempts = 10;
constexpr std::chrono::milliseconds kLockPause{20};
// Rows are read in order and once, so a cache is of little use; there may be a thousand databases.
constexpr const char* kSmallCache = "PRAGMA cache_size = -512";

[[noreturn]] void throw_unrecovered(const fs::path& path, const DatabaseError& error) {
  throw DatabaseError(path, error.trouble(),
                      fmt::format("its last writer was killed or ran out of space, and what it left in its "
                                  "log cannot be moved into it: it {}",
                                  error.problem()),
                      error.trouble() == DatabaseTrouble::full
                          ? error.advice()
                          : "allow writing of it and its folder for one time, or copy "
                            "it together with the files beside it that "
                            "start with its name to a place where you may write");
}

// Moves what a killed writer left in a log or a journal into the database; afterwards it can be read by anyone.
void recover(const fs::path& path) {
  try {
    Database database(path, DatabaseAccess::read_write);
    if (database.is_read_only()) {
      throw DatabaseError(path, DatabaseTrouble::read_only, "may not be written", "allow it");
    }
    // Exclusive before the first access: no shared memory is used, which network file systems do not have.
    database.run("PRAGMA locking_mode = EXCLUSIVE");
    end_log(database);
  } catch (const DatabaseError& error) {
    if (error.trouble() == DatabaseTrouble::full || error.trouble() == DatabaseTrouble::read_only) {
      throw_unrecovered(path, error);
    }
    throw;
  }
}

// A writer never changes the identity while it holds the lock, except at its start; then nothing may come out.
std::optional<CampaignIdentity> identity_past_lock(const fs::path& path) {
  try {
    Database database(path, DatabaseAccess::read_unlocked);
    const std::optional<DatabaseHeader> header = database.header();
    if (!header) return std::nullopt;
    check_header(*header, path);
    return read_identity(database);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::string database_name(Shard shard) {
  return fmt::format("rows-{}-of-{}.sqlite", shard.index + 1, shard.count);
}

std::vector<fs::path> database_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("rows-") && name.ends_with(".sqlite")) files.push_back(entry->path());
  }
  if (error) {
    throw IoError(
        fmt::format("{}: cannot be read as the folder of a campaign: {}; give the folder that "
                    "`nrec simulate` has written to",
                    folder.string(), error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool has_companion(const fs::path& path, const char* suffix) {
  std::error_code ignored;
  return fs::exists(fs::path(path.string() + suffix), ignored);
}

bool was_left_by_a_writer(const fs::path& path) {
  return has_companion(path, "-wal") || has_companion(path, "-journal");
}

void end_log(Database& database) {
  // The first access undoes or keeps what was begun; without tables the writer was killed while it made them.
  if (!has_schema(database) || database.integer("PRAGMA application_id") != kApplicationId) return;
  database.run("PRAGMA journal_mode = DELETE");
}

std::optional<OpenDatabase> open_database(const fs::path& path) {
  if (was_left_by_a_writer(path)) recover(path);
  auto database = std::make_optional<Database>(path, DatabaseAccess::read);
  std::optional<DatabaseHeader> header = database->header();
  if (header) check_header(*header, path);
  if (header && header->has_log) {
    database.reset();
    recover(path);
    database.emplace(path, DatabaseAccess::read);
  }
  database->run(kSmallCache);
  database->run("BEGIN");
  // The first read takes the lock: also an empty file may be held by a writer that has just begun.
  if (!has_schema(*database)) return std::nullopt;
  CampaignIdentity identity = read_identity(*database);
  return OpenDatabase{std::move(*database), std::move(identity)};
}

void visit_databases(const std::vector<fs::path>& files,
                     const std::function<void(OpenDatabase&&)>& visit_readable,
                     const std::function<void(WriterDatabase&&)>& visit_being_written) {
  std::vector<fs::path> waiting = files;
  for (int attempt = 0; !waiting.empty() && attempt < kLockAttempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kLockPause);
    std::vector<fs::path> still_waiting;
    for (const fs::path& path : waiting) {
      std::optional<OpenDatabase> opened;
      try {
        opened = open_database(path);
      } catch (const DatabaseError& error) {
        if (error.trouble() != DatabaseTrouble::busy) throw;
        still_waiting.push_back(path);
      }
      if (opened) visit_readable(std::move(*opened));
    }
    waiting = std::move(still_waiting);
  }
  for (const fs::path& path : waiting) visit_being_written({path, identity_past_lock(path)});
}

OpenFolder open_databases(const std::vector<fs::path>& files) {
  OpenFolder folder;
  visit_databases(
      files, [&](OpenDatabase&& one) { folder.readable.push_back(std::move(one)); },
      [&](WriterDatabase&& one) { folder.being_written.push_back(std::move(one)); });
  std::sort(folder.readable.begin(), folder.readable.end(), [](const OpenDatabase& a, const OpenDatabase& b) {
    return a.database.path() < b.database.path();
  });
  return folder;
}

}  // namespace nrec::simulation

namespace nrec {

bool is_campaign(const std::filesystem::path& folder) {
  using namespace simulation;
  const auto belongs = [](const std::filesystem::path& path) {
    try {
      // A journal may undo the first bytes: its writer was killed while it made the tables, or is making them now.
      if (has_companion(path, "-journal")) return open_database(path).has_value();
      const std::optional<DatabaseHeader> header = Database(path, DatabaseAccess::read).header();
      return header && header->is_sqlite && header->application_id == kApplicationId;
    } catch (const DatabaseError& error) {
      return error.trouble() == DatabaseTrouble::busy;
    }
  };
  try {
    const std::vector<std::filesystem::path> files = database_files(folder);
    return std::any_of(files.begin(), files.end(), belongs);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace nrec
