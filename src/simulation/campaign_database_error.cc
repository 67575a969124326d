#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "simulation/campaign_database.h"

namespace nrec::simulation {
namespace {

constexpr std::string_view kRunAgain = "run the same command again";

std::string words_of_system(int system_error) {
  return system_error == 0 ? "" : ": " + std::generic_category().message(system_error);
}

bool means_full(int system_error) {
  return system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG;
}

bool is_lock_failure(int code) {
  return code == SQLITE_IOERR_LOCK || code == SQLITE_IOERR_RDLOCK || code == SQLITE_IOERR_UNLOCK ||
         code == SQLITE_IOERR_CHECKRESERVEDLOCK || code == SQLITE_IOERR_BLOCKED;
}

DatabaseError io_failure(const std::filesystem::path& path, int code, std::string_view words,
                         int system_error) {
  if (means_full(system_error)) {
    return {path, DatabaseTrouble::full, fmt::format("cannot be written{}", words_of_system(system_error)),
            fmt::format("free some space or raise the limit, then {}", kRunAgain)};
  }
  if (is_lock_failure(code)) {
    return {path, DatabaseTrouble::other, fmt::format("cannot be locked{}", words_of_system(system_error)),
            "the file system of this folder has no locks; choose a folder on another one"};
  }
  if (code == SQLITE_IOERR_SHORT_READ) {
    return {path, DatabaseTrouble::other, fmt::format("is cut off ({})", words),
            "put a copy of it back, or move it away and " + std::string(kRunAgain) +
                ": its rows are simulated anew"};
  }
  return {
      path, DatabaseTrouble::other,
      fmt::format("cannot be read or written: the disk failed ({}{})", words, words_of_system(system_error)),
      fmt::format("see to the disk, then {}", kRunAgain)};
}

DatabaseError open_failure(const std::filesystem::path& path, std::string_view words, int system_error) {
  // After a refusal SQLite looks whether the file can at least be read; that there is none is not the problem.
  const std::string problem = fmt::format("cannot be opened ({}{})", words,
                                          system_error == ENOENT ? "" : words_of_system(system_error));
  if (system_error == EMFILE || system_error == ENFILE) {
    return {path, DatabaseTrouble::other, problem, "raise the limit of open files (ulimit -n)"};
  }
  if (means_full(system_error)) {
    return {path, DatabaseTrouble::full, problem, fmt::format("free some space, then {}", kRunAgain)};
  }
  return {path, DatabaseTrouble::read_only, problem,
          "allow reading and writing (chmod u+rw) of it and its folder, or choose another folder"};
}

}  // namespace

DatabaseError::DatabaseError(const std::filesystem::path& path, DatabaseTrouble trouble, std::string problem,
                             std::string advice)
    : IoError(fmt::format("{}: {}; {}", path.string(), problem, advice)),
      trouble_(trouble),
      problem_(std::move(problem)),
      advice_(std::move(advice)) {}

DatabaseError DatabaseError::from_code(const std::filesystem::path& path, int code, std::string_view words,
                                       int system_error) {
  switch (code & 0xff) {  // the lowest byte is the primary code
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {path, DatabaseTrouble::busy, "is being written by another process",
              "wait until it has ended, or stop it"};
    case SQLITE_FULL:
      return {path, DatabaseTrouble::full, "cannot be written: the disk is full",
              fmt::format("free some space, then {}", kRunAgain)};
    case SQLITE_IOERR:
      return io_failure(path, code, words, system_error);
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return open_failure(path, words, system_error);
    case SQLITE_READONLY:
      return {path, DatabaseTrouble::read_only, fmt::format("cannot be written ({})", words),
              "allow writing (chmod u+w) of it and its folder, or choose another folder"};
    case SQLITE_NOTADB:
      return {path, DatabaseTrouble::other, "is not an SQLite database, or its first bytes are damaged",
              "move it out of the folder of the campaign"};
    case SQLITE_NOMEM:
      return {path, DatabaseTrouble::other, "needs more memory than there is",
              "free some memory, then " + std::string(kRunAgain)};
    default:
      break;
  }
  return {path, DatabaseTrouble::other, fmt::format("is damaged ({})", words),
          "put a copy of it back, save what is left with `sqlite3 FILE .recover`, or move it away and " +
              std::string(kRunAgain) + ": its rows are simulated anew"};
}

void throw_damaged(const std::filesystem::path& path, std::string_view how) {
  throw DatabaseError::from_code(path, SQLITE_CORRUPT, how, 0);
}

}  // namespace nrec::simulation
