#include "simulation/campaign_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <bit>
#include <cstring>

namespace nrec::simulation {

static_assert(std::endian::native == std::endian::little,
              "blobs are little-endian and written from memory as they are");

namespace {

namespace fs = std::filesystem;

// SQLite takes paths of this length and adds "-journal" to them.
constexpr std::size_t kLongestSuffix = 8;

// Places in the header of a database file [SQLite, Database File Format, 1.3].
constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr std::size_t kHeaderBytes = 100;
constexpr std::size_t kWriteVersionAt = 18;
constexpr std::size_t kReadVersionAt = 19;
constexpr std::size_t kUserVersionAt = 60;
constexpr std::size_t kApplicationIdAt = 68;
constexpr char kLogVersion = 2;

// Absolute, because SQLite may be built to take a name that starts with "file:" for a URI.
std::string plain_name(const fs::path& path) { return fs::absolute(path).string(); }

// Past locks and log: what the file holds now. The letters of a URI that need no escape are written as they are.
std::string unlocked_name(const fs::path& path) {
  std::string uri = "file:";
  for (const char c : plain_name(path)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '-' || c == '_' || c == '.';
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri + "?immutable=1";
}

int open_flags(DatabaseAccess access) {
  // One connection is never used by two threads at once, so SQLite need not lock itself.
  constexpr int kAlways = SQLITE_OPEN_NOMUTEX;
  switch (access) {
    case DatabaseAccess::read:
      return kAlways | SQLITE_OPEN_READONLY;
    case DatabaseAccess::read_write:
      return kAlways | SQLITE_OPEN_READWRITE;
    case DatabaseAccess::create:
      return kAlways | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    case DatabaseAccess::read_unlocked:
      break;
  }
  return kAlways | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
}

std::int64_t big_endian_32(const char* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return static_cast<std::int32_t>(value);
}

}  // namespace

struct Database::Connection {
  explicit Connection(fs::path path_) : path(std::move(path_)) {}
  ~Connection() { sqlite3_close_v2(handle); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void check(int code) const {
    if (code == SQLITE_OK) return;
    const std::string words = sqlite3_errmsg(handle);
    throw DatabaseError::from_code(path, code, words, system_error(code));
  }

  // The connection does not notice what befalls its log; the file of the log does.
  int system_error(int code) const {
    int number = sqlite3_system_errno(handle);
    sqlite3_file* log = nullptr;
    if (number != 0 || (code & 0xff) != SQLITE_IOERR) return number;
    if (sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK &&
        log != nullptr && log->pMethods != nullptr) {
      log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &number);
    }
    return number;
  }

  sqlite3* handle = nullptr;
  fs::path path;
};

Database::Database(const fs::path& path, DatabaseAccess access)
    : connection_(std::make_shared<Connection>(path)) {
  const std::string name = plain_name(path);
  const auto longest = static_cast<std::size_t>(sqlite3_vfs_find(nullptr)->mxPathname) - kLongestSuffix;
  if (name.size() > longest) {
    throw DatabaseError(
        path, DatabaseTrouble::other,
        fmt::format("has a path of {} bytes, longer than the {} that it can have", name.size(), longest),
        "choose a folder with a shorter path");
  }
  // SQLite waits for ever for somebody to write into a pipe.
  std::error_code no_status;
  const fs::file_status status = fs::status(path, no_status);
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) {
    throw DatabaseError(path, DatabaseTrouble::other, "is not a file but a pipe, socket or device",
                        "move it out of the folder of the campaign");
  }
  const bool unlocked = access == DatabaseAccess::read_unlocked;
  const int code = sqlite3_open_v2(unlocked ? unlocked_name(path).c_str() : name.c_str(),
                                   &connection_->handle, open_flags(access), nullptr);
  sqlite3_extended_result_codes(connection_->handle, 1);
  connection_->check(code);
  // Files may come from anywhere: functions named in their schema are not run, sizes in their pages are checked.
  run("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON");
}

const fs::path& Database::path() const { return connection_->path; }

void Database::wait_for_locks(std::chrono::milliseconds time) {
  sqlite3_busy_timeout(connection_->handle, static_cast<int>(time.count()));
}

std::optional<DatabaseHeader> Database::header() const {
  sqlite3_file* file = nullptr;
  connection_->check(sqlite3_file_control(connection_->handle, "main", SQLITE_FCNTL_FILE_POINTER, &file));
  sqlite3_int64 size = 0;
  connection_->check(file->pMethods->xFileSize(file, &size));
  if (size == 0) return std::nullopt;
  std::array<char, kHeaderBytes> bytes{};
  const int code = file->pMethods->xRead(file, bytes.data(), kHeaderBytes, 0);
  if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) connection_->check(code);
  DatabaseHeader header;
  header.is_sqlite = std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
  header.has_log = bytes[kWriteVersionAt] == kLogVersion || bytes[kReadVersionAt] == kLogVersion;
  header.application_id = big_endian_32(&bytes[kApplicationIdAt]);
  header.schema_version = big_endian_32(&bytes[kUserVersionAt]);
  return header;
}

bool Database::is_read_only() const { return sqlite3_db_readonly(connection_->handle, "main") != 0; }

void Database::leave_log_alone() {
  int is_set = 0;
  sqlite3_db_config(connection_->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, &is_set);
}

std::uint64_t Database::longest_value() const {
  return static_cast<std::uint64_t>(sqlite3_limit(connection_->handle, SQLITE_LIMIT_LENGTH, -1));
}

bool Database::has_changed_a_row() const { return sqlite3_changes(connection_->handle) > 0; }

void Database::run(const char* sql) {
  connection_->check(sqlite3_exec(connection_->handle, sql, nullptr, nullptr, nullptr));
}

std::int64_t Database::integer(const char* sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Database::text(const char* sql) {
  Statement statement(*this, sql);
  return statement.step() ? std::string(statement.text(0)) : std::string();
}

void Statement::Finalizer::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement::Statement(const Database& database, std::string_view sql) : connection_(database.connection_) {
  sqlite3_stmt* statement = nullptr;
  check(sqlite3_prepare_v3(connection_->handle, sql.data(), static_cast<int>(sql.size()),
                           SQLITE_PREPARE_PERSISTENT, &statement, nullptr));
  statement_.reset(statement);
}

void Statement::check(int code) const { connection_->check(code); }

Statement& Statement::bind(int parameter, std::int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), parameter, value));
  return *this;
}

Statement& Statement::bind(int parameter, double value) {
  check(sqlite3_bind_double(statement_.get(), parameter, value));
  return *this;
}

Statement& Statement::bind(int parameter, std::string_view value) {
  // A null pointer would bind NULL instead of an empty text.
  check(sqlite3_bind_text64(statement_.get(), parameter, value.empty() ? "" : value.data(), value.size(),
                            SQLITE_STATIC, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind(int parameter, std::span<const double> value) {
  const void* bytes = value.empty() ? static_cast<const void*>("") : value.data();
  check(sqlite3_bind_blob64(statement_.get(), parameter, bytes, value.size_bytes(), SQLITE_STATIC));
  return *this;
}

Statement& Statement::bind_null(int parameter) {
  check(sqlite3_bind_null(statement_.get(), parameter));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) check(code);
  return code == SQLITE_ROW;
}

void Statement::reset() {
  sqlite3_reset(statement_.get());  // repeats the code of a failed step(), which has been thrown already
  sqlite3_clear_bindings(statement_.get());
}

void Statement::run() {
  try {
    step();
  } catch (...) {
    reset();
    throw;
  }
  reset();
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

bool Statement::is_integer(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_INTEGER;
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string_view Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return text == nullptr ? std::string_view() : std::string_view(text, num_bytes(column));
}

std::size_t Statement::num_bytes(int column) const {
  return static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
}

void Statement::copy_numbers(int column, std::span<double> to, std::string_view what,
                             std::uint64_t row) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  if (num_bytes(column) != to.size_bytes() || bytes == nullptr) {
    throw_damaged(path(), fmt::format("{} of row {} has {} bytes instead of {}", what, row, num_bytes(column),
                                      to.size_bytes()));
  }
  std::memcpy(to.data(), bytes, to.size_bytes());
}

const fs::path& Statement::path() const { return connection_->path; }

}  // namespace nrec::simulation
