#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nrec/simulation/campaign_store.h"
#include "simulation/campaign_database.h"

// Tables of a campaign's database, described in docs/formats/campaign.md.
namespace nrec::simulation {

inline constexpr std::int64_t kApplicationId = 0x6e726563;  // "nrec"
inline constexpr std::int64_t kSchemaVersion = 1;
inline constexpr std::int64_t kNumStatuses = 6;  // of RowStatus

// Errors   DatabaseError: not a campaign's, or of a newer nrec
void check_header(const DatabaseHeader& header, const std::filesystem::path& path);

// Makes the tables; to be called inside a transaction on a database without any.
void make_schema(Database& database, const CampaignIdentity& identity, Shard shard);
bool has_schema(Database& database);
std::uint64_t count_rows(Database& database);

// Errors   DatabaseError: something is missing or is not what it should be
CampaignIdentity read_identity(Database& database);

// Replaces the stored identity and notes in the database what was changed; to be called inside a transaction.
void change_identity(Database& database, const CampaignIdentity& identity,
                     const std::vector<std::string>& changes);
// How often that was done.
std::uint64_t num_identity_changes(Database& database);

// "a; b; c."
std::string sentences_text(const std::vector<std::string>& sentences);

}  // namespace nrec::simulation
