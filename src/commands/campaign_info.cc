#include "commands/campaign_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "nrec/core/error.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"
#include "nrec/simulation/campaign_store.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kShownReasons = 10;

std::string word(RowStatus status) {
  std::string name(row_status_name(status));
  std::ranges::replace_if(
      name, [](char c) { return c == ' ' || c == '-'; }, '_');
  return name;
}

void list_reasons(const CampaignSummary& summary, Listing& list) {
  std::size_t number = 0;
  for (const CampaignSummary::Reason& reason : summary.reasons) {
    if (++number > kShownReasons) break;
    const std::string start = fmt::format("failure_{}.", number);
    list.add(start + "reason", std::string(row_status_name(reason.status)) +
                                   (reason.reason.empty() ? "" : ": " + reason.reason));
    list.add(start + "count", static_cast<std::int64_t>(reason.count));
    list.add(start + "example_row", static_cast<std::int64_t>(reason.example_row));
    list.add(start + "example_theta", reason.example_theta);
    if (!reason.example_messages.empty()) list.add(start + "example_messages", reason.example_messages);
  }
}

/// progress-3-of-16.json belongs to rows-3-of-16.sqlite.
fs::path progress_path(const fs::path& database) {
  std::string name = database.stem().string();
  name.replace(0, std::min<std::size_t>(name.size(), 4), "progress");
  return database.parent_path() / (name + ".json");
}

std::optional<Record> progress_of(const fs::path& database) {
  try {
    const fs::path path = progress_path(database);
    return record_from_json(read_file(path), path.string());
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Rows that the writers at work have made durable, as they say themselves.
std::int64_t rows_of_writers(const CampaignSummary& summary) {
  std::int64_t rows = 0;
  for (const fs::path& database : summary.being_written) {
    const std::optional<Record> record = progress_of(database);
    const RecordValue* value = record ? record->find("num_stored") : nullptr;
    if (const auto* number = value ? std::get_if<std::int64_t>(value) : nullptr) rows += *number;
  }
  return rows;
}

/// A writer at work says by its progress file how far it is; the database itself is locked.
void list_writer(const fs::path& database, Listing& list) {
  const std::string start = "writing." + database.stem().string() + ".";
  const std::optional<Record> record = progress_of(database);
  if (!record) {
    list.add(start + "progress", std::string("not known yet"));
    return;
  }
  for (const auto& [name, value] : record->entries()) {
    const auto* texts = std::get_if<std::vector<std::string>>(&value);
    const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value);
    const bool is_empty = (texts && texts->empty()) || (numbers && numbers->empty());
    if (!is_empty && name != "schema_version" && name != "status") list.add(start + name, value);
  }
}

}  // namespace

void list_campaign(const fs::path& folder, Listing& list) {
  const CampaignReader reader(folder);
  const CampaignSummary summary = reader.summary();
  const CampaignIdentity& identity = summary.identity;
  list.add("kind", std::string("campaign"));
  if (!identity.parameter_names.empty()) {
    list.add("simulator", identity.simulator);
    list.add("simulator_hash", identity.simulator_hash);
    list.add("seed", static_cast<std::int64_t>(identity.seed));
    list.add("parameters", identity.parameter_names);
    list.add("prior", identity.prior);
    list.add("x_shape", std::vector<std::int64_t>(identity.x_shape.begin(), identity.x_shape.end()));
  }
  list.add("databases", static_cast<std::int64_t>(summary.databases.size()));
  // A database that is being written is locked: its rows are those that its writer tells of.
  if (!summary.being_written.empty()) list.add("rows_of_writers_at_work", rows_of_writers(summary));
  list.add("rows", static_cast<std::int64_t>(summary.num_rows));
  for (std::size_t i = 0; i < summary.status_counts.size(); ++i)
    list.add("rows." + word(static_cast<RowStatus>(i)), static_cast<std::int64_t>(summary.status_counts[i]));
  list.add("seconds_per_row", summary.seconds_per_row);
  if (summary.num_identity_changes > 0)
    list.add("accepted_changes", static_cast<std::int64_t>(summary.num_identity_changes));
  list_reasons(summary, list);
  list.add("being_written", static_cast<std::int64_t>(summary.being_written.size()));
  for (const fs::path& database : summary.being_written) list_writer(database, list);
}

}  // namespace nrec
