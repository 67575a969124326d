#include "simulation/campaign_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "simulation/campaign_merge.h"
#include "simulation/campaign_schema.h"

namespace nrec::simulation {
namespace {

// Reasons that are shown, and reasons that are told apart while counting: a simulator may put a number into each.
constexpr std::size_t kMostReasons = 20;
constexpr std::size_t kMostDifferentReasons = 10000;

// Counts failures by status and reason; remembers the first row of each, and its database.
class ReasonCounts {
 public:
  void note(RowStatus status, std::string_view reason, std::uint64_t row, std::size_t database) {
    const std::string key = fmt::format("{} {}", static_cast<int>(status), reason);
    const auto known = places_.find(key);
    if (known != places_.end()) {
      ++entries_[known->second].reason.count;
    } else if (entries_.size() < kMostDifferentReasons) {
      places_.emplace(key, entries_.size());
      entries_.push_back({{status, std::string(reason), 1, row, {}, {}}, database});
    }
  }

  struct Entry {
    CampaignSummary::Reason reason;
    std::size_t database = 0;
  };

  std::vector<Entry> most_frequent() && {
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& a, const Entry& b) { return a.reason.count > b.reason.count; });
    if (entries_.size() > kMostReasons) entries_.resize(kMostReasons);
    return std::move(entries_);
  }

 private:
  std::vector<Entry> entries_;  // in the order of their first rows
  std::unordered_map<std::string, std::size_t> places_;
};

CampaignSummary::Reason with_example(ReasonCounts::Entry entry, const OpenDatabase& open) {
  Statement statement(open.database, "SELECT theta, messages FROM rows WHERE row = ?");
  statement.bind(1, static_cast<std::int64_t>(entry.reason.example_row));
  require_internal(statement.step(), "a row is gone inside a transaction");
  entry.reason.example_theta.resize(open.identity.dim_theta());
  statement.copy_numbers(0, entry.reason.example_theta, "theta", entry.reason.example_row);
  entry.reason.example_messages = statement.text(1);
  return std::move(entry.reason);
}

void list_databases(const OpenFolder& open, CampaignSummary& summary) {
  for (const OpenDatabase& one : open.readable) {
    Database database = one.database;
    summary.databases.push_back(database.path());
    summary.num_identity_changes += num_identity_changes(database);
  }
  for (const WriterDatabase& one : open.being_written) summary.being_written.push_back(one.path);
}

}  // namespace

CampaignSummary summarise(const OpenFolder& open, const CampaignIdentity& identity) {
  CampaignSummary summary;
  summary.identity = identity;
  summary.status_counts.assign(kNumStatuses, 0);
  list_databases(open, summary);
  ReasonCounts reasons;
  double seconds = 0.0;
  for (RowMerge merge(open.readable, "status, seconds, reason"); merge.next(); ++summary.num_rows) {
    const Statement& statement = merge.statement();
    const RowStatus status = row_status(statement, 1, merge.row());
    ++summary.status_counts[static_cast<std::size_t>(status)];
    seconds += statement.real(2);
    if (status != RowStatus::ok) reasons.note(status, statement.text(3), merge.row(), merge.database());
  }
  summary.num_ok = summary.status_counts[static_cast<std::size_t>(RowStatus::ok)];
  if (summary.num_rows > 0) summary.seconds_per_row = seconds / static_cast<double>(summary.num_rows);
  for (ReasonCounts::Entry& entry : std::move(reasons).most_frequent()) {
    const OpenDatabase& example = open.readable[entry.database];
    summary.reasons.push_back(with_example(std::move(entry), example));
  }
  return summary;
}

}  // namespace nrec::simulation
