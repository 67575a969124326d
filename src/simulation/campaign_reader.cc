#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "nrec/core/error.h"
#include "nrec/simulation/campaign_store.h"
#include "simulation/campaign_folder.h"
#include "simulation/campaign_merge.h"
#include "simulation/campaign_schema.h"
#include "simulation/campaign_summary.h"

namespace nrec {

namespace fs = std::filesystem;

namespace {

using simulation::OpenDatabase;
using simulation::OpenFolder;
using simulation::RowMerge;
using simulation::Statement;
using simulation::WriterDatabase;

void check_same(const fs::path& folder, const std::string& first, const CampaignIdentity& identity,
                const fs::path& other, const CampaignIdentity& other_identity) {
  const std::vector<std::string> changes = differences(identity, other_identity);
  if (changes.empty()) return;
  throw ConfigError(
      fmt::format("{}: its databases {} and {} are of different problems: from the first to the second {}. "
                  "Rows of different "
                  "problems are never merged: move one of the databases to another folder, or go on with "
                  "each of them with {}",
                  folder.string(), first, other.filename().string(), simulation::sentences_text(changes),
                  simulation::kAcceptFlag));
}

// The identity that all databases share. Errors   ConfigError: they do not; IoError: none could be read
CampaignIdentity common_identity(const fs::path& folder, const OpenFolder& open) {
  std::optional<CampaignIdentity> identity;
  std::string first;
  const auto meet = [&](const fs::path& path, const CampaignIdentity& other) {
    if (identity) {
      check_same(folder, first, *identity, path, other);
    } else {
      identity = other;
      first = path.filename().string();
    }
  };
  for (const OpenDatabase& one : open.readable) meet(one.database.path(), one.identity);
  for (const WriterDatabase& one : open.being_written) {
    if (one.identity) meet(one.path, *one.identity);
  }
  if (identity) return *identity;
  if (!open.being_written.empty()) {
    throw IoError(fmt::format("{}: its database is being made at this moment; try again", folder.string()));
  }
  throw IoError(
      fmt::format("{}: holds no database of a campaign (rows-*.sqlite); give the folder that "
                  "`nrec simulate` has written to",
                  folder.string()));
}

struct RowCount {
  std::uint64_t stored = 0;   // different rows below the limit
  std::uint64_t leading = 0;  // rows 0 .. leading - 1 are there
};

RowCount count_rows(const std::vector<OpenDatabase>& databases, std::uint64_t limit) {
  RowCount count;
  for (RowMerge merge(databases, ""); merge.next() && merge.row() < limit; ++count.stored) {
    if (merge.row() == count.leading) ++count.leading;
  }
  return count;
}

void check_complete(const fs::path& folder, const RowCount& count, std::uint64_t num_rows) {
  if (count.stored >= num_rows) return;
  throw ShapeError(
      fmt::format("{}: {} rows are wanted but {} of them are missing, the first is row {}; go on with the "
                  "campaign by the "
                  "command that started it, or ask for fewer rows: the first {} are there",
                  folder.string(), num_rows, num_rows - count.stored, count.leading, count.leading));
}

void check_no_writers(const std::vector<WriterDatabase>& being_written) {
  if (being_written.empty()) return;
  throw ConfigError(fmt::format(
      "{}: is being written by another process{}; wait until it has ended, or stop it",
      being_written.front().path.string(),
      being_written.size() == 1 ? "" : fmt::format(", as are {} more databases", being_written.size() - 1)));
}

SimulationSet empty_set(const fs::path& folder, const CampaignIdentity& identity, std::uint64_t num_rows) {
  const double bytes = static_cast<double>(num_rows) *
                       static_cast<double>(identity.dim_theta() + identity.dim_x()) * sizeof(double);
  SimulationSet set;
  try {
    if (bytes > static_cast<double>(std::numeric_limits<std::ptrdiff_t>::max())) throw std::bad_alloc();
    set.theta = Matrix<double>(num_rows, identity.dim_theta());
    set.x = Matrix<double>(num_rows, identity.dim_x());
    set.status.resize(num_rows);
  } catch (const std::bad_alloc&) {
    throw IoError(
        fmt::format("{}: {} rows with {} parameters and {} numbers in x need {:.3g} GB of memory; ask for "
                    "fewer rows",
                    folder.string(), num_rows, identity.dim_theta(), identity.dim_x(), bytes / 1e9));
  }
  set.parameter_names = identity.parameter_names;
  set.source = folder.string();
  return set;
}

void copy_row(const RowMerge& merge, std::size_t at, SimulationSet& set) {
  const Statement& statement = merge.statement();
  const RowStatus status = simulation::row_status(statement, 1, merge.row());
  set.status[at] = status;
  statement.copy_numbers(2, set.theta.row(at), "theta", merge.row());
  const std::span<double> x = set.x.row(at);
  if (statement.is_null(3) && status != RowStatus::ok && status != RowStatus::non_finite) {
    std::fill(x.begin(), x.end(), std::numeric_limits<double>::quiet_NaN());
  } else {
    statement.copy_numbers(3, x, "x", merge.row());
  }
}

}  // namespace

struct CampaignReader::State {
  // All databases as they are now. They are not kept open, so that writers can start between two readings.
  OpenFolder open() const;

  fs::path folder;
  CampaignIdentity identity;
};

OpenFolder CampaignReader::State::open() const {
  OpenFolder open = simulation::open_databases(simulation::database_files(folder));
  if (common_identity(folder, open) != identity) {
    throw ConfigError(
        fmt::format("{}: its problem was changed while it was read; start again", folder.string()));
  }
  return open;
}

CampaignReader::CampaignReader(const fs::path& folder) : state_(std::make_unique<State>()) {
  state_->folder = folder;
  state_->identity = common_identity(folder, simulation::open_databases(simulation::database_files(folder)));
}

CampaignReader::~CampaignReader() = default;
CampaignReader::CampaignReader(CampaignReader&&) noexcept = default;

const CampaignIdentity& CampaignReader::identity() const { return state_->identity; }

CampaignSummary CampaignReader::summary() const {
  return simulation::summarise(state_->open(), state_->identity);
}

SimulationSet CampaignReader::read(std::uint64_t num_rows) const {
  const OpenFolder open = state_->open();
  check_no_writers(open.being_written);
  const std::uint64_t limit = num_rows > 0 ? num_rows : std::numeric_limits<std::uint64_t>::max();
  const RowCount count = count_rows(open.readable, limit);
  check_complete(state_->folder, count, num_rows);
  SimulationSet set = empty_set(state_->folder, state_->identity, count.stored);
  std::size_t at = 0;
  for (RowMerge merge(open.readable, "status, theta, x"); at < count.stored && merge.next(); ++at) {
    copy_row(merge, at, set);
  }
  require_internal(at == count.stored, "a campaign gave fewer rows than it was counted to have");
  return set;
}

}  // namespace nrec
