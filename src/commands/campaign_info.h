#pragma once

#include <filesystem>

#include "commands/listing.h"

namespace nrec {

/// What is in a campaign's databases, and what their writers say who are at work now.
/// Errors   those of CampaignReader
void list_campaign(const std::filesystem::path& folder, Listing& list);

}  // namespace nrec
