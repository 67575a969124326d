#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/simulation/row_runner.h"
#include "nrec/simulation/simulation_set.h"

namespace nrec {

/// What all rows of a campaign share; two databases with different identities are never merged.
struct CampaignIdentity {
  std::uint64_t seed = 1;
  std::vector<std::string> parameter_names;  // [D]
  std::vector<std::string> prior;            // one line per term: Prior::description()
  std::string simulator;                     // for humans: the command, the library, the task
  std::string simulator_hash;                // of its files and of how it is called
  std::vector<std::size_t> x_shape;          // of one row; M is the product

  std::size_t dim_theta() const { return parameter_names.size(); }
  std::size_t dim_x() const;
  bool operator==(const CampaignIdentity&) const = default;
};

/// What differs, for messages: one sentence per field, with both values; empty when equal.
std::vector<std::string> differences(const CampaignIdentity& stored, const CampaignIdentity& wanted);

/// Which part of the row numbers a writer works on: those with row % count == index.
struct Shard {
  std::uint64_t index = 0;  // from 0
  std::uint64_t count = 1;
  bool operator==(const Shard&) const = default;
};

/// What to do when the stored identity is another one.
enum class ChangedCampaign { refuse, accept };

/// The one writer of one database of a campaign folder: rows-<index + 1>-of-<count>.sqlite.
///
/// SQLite in WAL mode, exclusive, synchronous = FULL: what commit() has returned from survives kill -9 and power loss.
/// An object belongs to one thread at a time; in a forked child it does nothing. As long as it lives, its process may
/// open the database in no other way than through the functions of this header: closing any other descriptor of the
/// file would drop the lock.
class CampaignWriter {
 public:
  /// Makes the folder and the database, or goes on with them; recovers from a kill. `changed` = accept stores the new
  /// identity in this database, and that and how it was changed.
  ///
  /// Errors   ConfigError: another process writes this database, or reads it for longer than a few seconds; the stored
  ///          identity (of this or of any other database in the folder) differs and `changed` is refuse: every
  ///          difference, and what to do; stored rows have another size (also with accept);
  ///          IoError: cannot be made, is not a campaign's database, is damaged, has a newer schema
  CampaignWriter(const std::filesystem::path& folder, const CampaignIdentity& identity, Shard shard,
                 ChangedCampaign changed);
  /// Commits what was added, as far as that is possible, and leaves one file that many can read at once.
  ~CampaignWriter();
  CampaignWriter(const CampaignWriter&) = delete;
  CampaignWriter& operator=(const CampaignWriter&) = delete;

  const std::filesystem::path& path() const;
  /// Row numbers already stored by this writer or by any readable database of the folder with the same identity,
  /// ascending; rows added since the last commit are among them.
  std::vector<std::uint64_t> stored_rows() const;

  /// Adds a row to the open transaction; a row that is already there is left as it is.
  /// Shapes   theta [D]; result.x [M], or empty when there is none
  /// Errors   IoError: disk full, disk failure: nothing acknowledged is lost, the transaction is; afterwards add() and
  ///          commit() throw the same again; ShapeError: sizes that are not the campaign's; DomainError: row >= 2^63
  void add(std::span<const double> theta, const RowResult& result);
  /// Bytes added since the last commit.
  std::size_t pending_bytes() const;
  /// Makes everything added durable. Errors as add().
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What is in a campaign, as far as it has been committed.
struct CampaignSummary {
  struct Reason {  // of failures, most frequent first
    RowStatus status = RowStatus::failed;
    std::string reason;
    std::uint64_t count = 0;
    std::uint64_t example_row = 0;
    std::vector<double> example_theta;
    std::string example_messages;
  };
  CampaignIdentity identity;
  std::uint64_t num_rows = 0;  // different rows over all databases
  std::uint64_t num_ok = 0;
  std::vector<std::uint64_t> status_counts;  // [6], by RowStatus
  std::vector<Reason> reasons;               // at most 20
  double seconds_per_row = 0.0;              // mean over rows
  std::uint64_t num_identity_changes =
      0;  // how often a database went on with another problem on the user's word
  std::vector<std::filesystem::path> databases;
  std::vector<std::filesystem::path> being_written;  // locked by a writer now, their rows are not counted
};

/// Reads a campaign folder: all its databases merged by row number; a row stored twice counts once (the one in the
/// database that comes first by name).
class CampaignReader {
 public:
  /// What a killed writer left in its log is moved into the database, which needs leave to write for that one time.
  ///
  /// Errors   IoError: no such folder, no database in it, damaged, newer schema; ConfigError: databases of different
  ///          campaigns
  explicit CampaignReader(const std::filesystem::path& folder);
  ~CampaignReader();
  CampaignReader(CampaignReader&&) noexcept;

  const CampaignIdentity& identity() const;
  CampaignSummary summary() const;
  /// Rows 0 .. num_rows - 1 (all stored rows if num_rows is 0) in the order of their numbers, failures with their status
  /// and x = nan. One copy: rows go from the database to their place.
  ///
  /// Errors   ConfigError: a database is being written; ShapeError: rows missing (how many, and which first)
  SimulationSet read(std::uint64_t num_rows = 0) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether a folder holds at least one database of a campaign, also one that is being written; by the first bytes of its
/// files rows-*.sqlite. Throws nothing.
bool is_campaign(const std::filesystem::path& folder);

}  // namespace nrec
