#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nrec/core/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace nrec::simulation {

// What went wrong with a database, as far as callers treat it differently.
enum class DatabaseTrouble { busy, full, read_only, other };

// The text is made for users: path, problem, what to do.
class DatabaseError final : public IoError {
 public:
  DatabaseError(const std::filesystem::path& path, DatabaseTrouble trouble, std::string problem,
                std::string advice);
  // From a result code of SQLite, its words, and the system's error number (0: none).
  static DatabaseError from_code(const std::filesystem::path& path, int code, std::string_view words,
                                 int system_error);

  DatabaseTrouble trouble() const { return trouble_; }
  const std::string& problem() const { return problem_; }
  const std::string& advice() const { return advice_; }

 private:
  DatabaseTrouble trouble_;
  std::string problem_;
  std::string advice_;
};

// Throws a DatabaseError that says that the content of a database is damaged: where and how.
[[noreturn]] void throw_damaged(const std::filesystem::path& path, std::string_view how);

// What the first bytes of a database file say.
struct DatabaseHeader {
  bool is_sqlite = false;
  bool has_log = false;  // in WAL mode
  std::int64_t application_id = 0;
  std::int64_t schema_version = 0;
};

enum class DatabaseAccess {
  read,           // the file must exist
  read_write,     // the file must exist
  create,         // read_write, and makes the file
  read_unlocked,  // past the lock of a writer: only for what a writer never changes
};

// A connection to one SQLite file. It belongs to one thread at a time.
//
// No database file may be opened but through this class: closing any descriptor of a file drops all locks that this
// process has on it (POSIX), SQLite alone knows how to avoid that.
class Database {
 public:
  // Errors   DatabaseError, as all functions here
  Database(const std::filesystem::path& path, DatabaseAccess access);

  const std::filesystem::path& path() const;
  // How long to wait for the locks of others before `busy` is thrown; 0 at the start.
  void wait_for_locks(std::chrono::milliseconds time);
  // From the file as it is, without a lock; nothing when the file is empty.
  std::optional<DatabaseHeader> header() const;
  // The file could be opened for reading only, though writing was asked for.
  bool is_read_only() const;
  // From now on nothing is written any more, not even when the connection is closed.
  void leave_log_alone();
  // Longest text or blob in bytes.
  std::uint64_t longest_value() const;

  // Whether the last INSERT put a row in.
  bool has_changed_a_row() const;

  // Runs statements without parameters and drops what they answer.
  void run(const char* sql);
  // First column of the first answer; 0 or "" when there is none.
  std::int64_t integer(const char* sql);
  std::string text(const char* sql);

 private:
  friend class Statement;
  struct Connection;
  std::shared_ptr<Connection> connection_;
};

// A prepared statement; keeps its connection open. Parameters are numbered from 1, columns from 0.
class Statement {
 public:
  Statement(const Database& database, std::string_view sql);

  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, double value);
  // The bytes of texts and numbers must live until reset().
  Statement& bind(int parameter, std::string_view value);
  Statement& bind(int parameter, std::span<const double> value);
  Statement& bind_null(int parameter);

  // To the next answer; false: there is none.
  bool step();
  // Ends the answers and forgets the parameters.
  void reset();
  // Runs it once and resets it, also when it fails.
  void run();

  // Views live until the next step() or reset().
  bool is_null(int column) const;
  bool is_integer(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;
  std::size_t num_bytes(int column) const;
  // Copies a blob of exactly that size. Errors   DatabaseError: it has another size; `what` and `row` name it
  void copy_numbers(int column, std::span<double> to, std::string_view what, std::uint64_t row) const;

  const std::filesystem::path& path() const;

 private:
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };
  void check(int code) const;

  std::shared_ptr<Database::Connection> connection_;
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
};

}  // namespace nrec::simulation
