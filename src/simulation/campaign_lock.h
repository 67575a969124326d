#pragma once

#include <filesystem>

#include "nrec/simulation/campaign_store.h"
#include "simulation/campaign_database.h"

// What a writer does before it writes.
namespace nrec::simulation {

// Makes the folder and what is missing above it. Errors   IoError: cannot be made
void make_campaign_folder(const std::filesystem::path& folder);

// Opens or makes a database with an exclusive lock that lasts as long as the connection, and puts in order what a
// killed writer left. Waits a few seconds for others who hold it. It may still have no tables.
// Errors   ConfigError: another process writes or reads it; DatabaseError: damaged, foreign, newer, cannot be written
Database lock_database(const std::filesystem::path& path);

// Makes the tables of a new database; else compares the identity and, if told so, replaces it.
// Errors   ConfigError: another identity, or rows of another size
void settle_identity(Database& database, const CampaignIdentity& identity, Shard shard,
                     ChangedCampaign changed);

// Errors   ConfigError: another database of the folder has another identity
void check_others(const std::filesystem::path& folder, const std::filesystem::path& own,
                  const CampaignIdentity& identity);

}  // namespace nrec::simulation
