#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "core/utf8_text.h"
#include "nrec/core/error.h"
#include "nrec/simulation/campaign_store.h"
#include "simulation/campaign_database.h"
#include "simulation/campaign_folder.h"
#include "simulation/campaign_lock.h"
#include "simulation/campaign_schema.h"

namespace nrec {

namespace fs = std::filesystem;

namespace {

using simulation::Database;
using simulation::DatabaseError;
using simulation::OpenDatabase;
using simulation::Statement;

// A row beside its numbers and texts: its header and small columns.
constexpr std::size_t kRowOverhead = 32;
// A commit may have some megabytes: what does not fit the cache would be written twice. The log is moved into the
// database when it has about 2 MB.
constexpr const char* kWriterSettings =
    "PRAGMA cache_size = -4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA "
    "wal_autocheckpoint = 128";
constexpr std::string_view kInsert =
    "INSERT INTO rows (row, status, attempts, seconds, theta, reason, messages, x)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (row) DO NOTHING";

void check_arguments(const CampaignIdentity& identity, Shard shard) {
  if (shard.index >= shard.count) {
    throw ConfigError(
        fmt::format("campaign: shard {} of {}; shards are numbered from 1 to how many there are",
                    shard.index + 1, shard.count));
  }
  if (identity.dim_theta() == 0) {
    throw ConfigError("campaign: there are no parameters; a campaign needs at least one");
  }
  if (identity.dim_x() == 0) {
    throw ConfigError("campaign: x of a row has no numbers; at least one is needed");
  }
}

void check_row_size(const Database& database, const CampaignIdentity& identity) {
  const std::uint64_t most = database.longest_value() / sizeof(double);
  if (std::max(identity.dim_x(), identity.dim_theta()) <= most) return;
  throw ConfigError(
      fmt::format("campaign: a row has {} parameters and {} numbers in x; a database can hold {} of each, "
                  "let the simulator "
                  "write fewer",
                  identity.dim_theta(), identity.dim_x(), most));
}

// Text for a database: UTF-8 without zero bytes, at which some readers would stop.
std::string stored_text(std::string_view text) {
  std::string valid = utf8_text(text);
  std::replace(valid.begin(), valid.end(), '\0', '?');
  return valid;
}

void append_rows(Database& database, std::vector<std::uint64_t>& rows) {
  Statement statement(database, "SELECT row FROM rows WHERE row >= 0");
  while (statement.step()) rows.push_back(static_cast<std::uint64_t>(statement.integer(0)));
}

}  // namespace

struct CampaignWriter::State {
  State(const fs::path& folder_, const fs::path& path_, CampaignIdentity identity_)
      : folder(folder_),
        path(path_),
        identity(std::move(identity_)),
        database(simulation::lock_database(path_)) {}

  void start();
  void close();
  void check_row(std::span<const double> theta, const RowResult& result) const;
  void insert(std::span<const double> theta, const RowResult& result);
  // Runs `work`; when the database fails in it, this writer is done for.
  template <class Work>
  void guarded(Work&& work);
  // Errors   IoError: the file has been removed or replaced while it was written
  void check_file();

  fs::path folder;
  fs::path path;
  CampaignIdentity identity;
  std::size_t dim_theta = 0;
  std::size_t dim_x = 0;
  Database database;
  std::optional<Statement> insertion;
  ::pid_t owner = ::getpid();
  bool has_transaction = false;
  std::size_t pending_bytes = 0;
  std::uint64_t num_rows = 0;  // committed
  std::uint64_t num_added = 0;
  std::string failure;  // text of the error that ended this writer
  struct ::stat file = {};
};

void CampaignWriter::State::start() {
  dim_theta = identity.dim_theta();
  dim_x = identity.dim_x();
  database.run(kWriterSettings);
  num_rows = simulation::count_rows(database);
  insertion.emplace(database, kInsert);
  ::stat(path.c_str(), &file);
}

// SQLite would go on writing into a file that nobody sees any more.
void CampaignWriter::State::check_file() {
  struct ::stat now = {};
  if (::stat(path.c_str(), &now) == 0 && now.st_ino == file.st_ino && now.st_dev == file.st_dev) return;
  failure = fmt::format(
      "{}: was removed or replaced while it was written; the rows of this run are lost with it. Put it back, "
      "or run the same command again, which makes what is missing",
      path.string());
  database.leave_log_alone();
  throw IoError(failure);
}

// Leaves one file that can be read by many at once, also from a folder that may not be written.
void CampaignWriter::State::close() {
  insertion.reset();
  database.run("PRAGMA journal_mode = DELETE");
}

template <class Work>
void CampaignWriter::State::guarded(Work&& work) {
  if (!failure.empty()) throw IoError(failure);
  try {
    work();
  } catch (const DatabaseError& error) {
    // What is committed is in the database and its log; a disk in trouble is not written to any more.
    failure = fmt::format("{}: the last rows cannot be stored: it {}; {}. {} rows are safe in it",
                          path.string(), error.problem(), error.advice(), num_rows);
    database.leave_log_alone();
    throw IoError(failure);
  }
}

void CampaignWriter::State::check_row(std::span<const double> theta, const RowResult& result) const {
  if (theta.size() != dim_theta) {
    throw ShapeError(
        fmt::format("campaign: theta of row {} has {} numbers but the campaign has {} parameters", result.row,
                    theta.size(), dim_theta));
  }
  const bool needs_x = result.status == RowStatus::ok || result.status == RowStatus::non_finite;
  if (result.x.size() != dim_x && (needs_x || !result.x.empty())) {
    throw ShapeError(fmt::format("campaign: x of row {} ({}) has {} numbers but the campaign has {}",
                                 result.row, row_status_name(result.status), result.x.size(), dim_x));
  }
  if (result.row > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw DomainError(fmt::format("campaign: row {}; the highest number of a row is 2^63 - 1", result.row));
  }
}

void CampaignWriter::State::insert(std::span<const double> theta, const RowResult& result) {
  const std::string reason = stored_text(result.reason);
  const std::string messages = stored_text(result.messages);
  insertion->bind(1, static_cast<std::int64_t>(result.row))
      .bind(2, static_cast<std::int64_t>(result.status))
      .bind(3, static_cast<std::int64_t>(result.attempts))
      .bind(4, std::isfinite(result.seconds) ? result.seconds : 0.0)
      .bind(5, theta)
      .bind(6, std::string_view(reason))
      .bind(7, std::string_view(messages));
  if (result.x.empty()) {
    insertion->bind_null(8);
  } else {
    insertion->bind(8, std::span<const double>(result.x));
  }
  insertion->run();
  if (!database.has_changed_a_row()) return;
  ++num_added;
  pending_bytes +=
      (theta.size() + result.x.size()) * sizeof(double) + reason.size() + messages.size() + kRowOverhead;
}

CampaignWriter::CampaignWriter(const fs::path& folder, const CampaignIdentity& identity, Shard shard,
                               ChangedCampaign changed) {
  check_arguments(identity, shard);
  simulation::make_campaign_folder(folder);
  const fs::path path = folder / simulation::database_name(shard);
  if (changed == ChangedCampaign::refuse) simulation::check_others(folder, path, identity);
  state_ = std::make_unique<State>(folder, path, identity);
  check_row_size(state_->database, identity);
  simulation::settle_identity(state_->database, identity, shard, changed);
  state_->start();
}

CampaignWriter::~CampaignWriter() {
  if (state_->owner != ::getpid()) {
    // A forked child has a copy of this object but not its lock: it must touch neither the file nor the log.
    static_cast<void>(state_.release());
    return;
  }
  if (!state_->failure.empty()) return;
  try {
    commit();
    state_->close();
  } catch (const std::exception&) {  // a later writer or reader moves the log into the database
  }
}

const fs::path& CampaignWriter::path() const { return state_->path; }

std::vector<std::uint64_t> CampaignWriter::stored_rows() const {
  std::vector<std::uint64_t> rows;
  append_rows(state_->database, rows);
  std::vector<fs::path> others = simulation::database_files(state_->folder);
  std::erase(others, state_->path);
  const auto append_others = [&](OpenDatabase&& other) {
    if (other.identity == state_->identity) append_rows(other.database, rows);
  };
  simulation::visit_databases(others, append_others, [](simulation::WriterDatabase&&) {});
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

void CampaignWriter::add(std::span<const double> theta, const RowResult& result) {
  state_->check_row(theta, result);
  state_->guarded([&] {
    if (!state_->has_transaction) state_->database.run("BEGIN");
    state_->has_transaction = true;
    state_->insert(theta, result);
  });
}

std::size_t CampaignWriter::pending_bytes() const { return state_->pending_bytes; }

void CampaignWriter::commit() {
  state_->guarded([&] {
    if (!state_->has_transaction) return;
    state_->database.run("COMMIT");
    state_->check_file();
    state_->has_transaction = false;
    state_->num_rows += std::exchange(state_->num_added, 0);
    state_->pending_bytes = 0;
  });
}

}  // namespace nrec
