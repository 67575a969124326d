#pragma once

#include <filesystem>

#include "nrec/commands/problem.h"
#include "nrec/core/record.h"
#include "nrec/simulation/campaign.h"

namespace nrec {

/// How a problem's campaign is to be gone on with.
struct CampaignRunOptions {
  std::filesystem::path folder;
  Shard shard;
  ChangedCampaign changed = ChangedCampaign::refuse;
  bool take_stored_seed = false;  // the seed of the run is for what comes after; a campaign keeps its own
};

/// What came of it.
struct CampaignRun {
  CampaignReport report;
  Record record;  // "campaign.*"
};

/// Whether the problem's rows come from a campaign: it has an external simulator, or names the campaign.
bool uses_campaign(const Problem& problem);

/// Makes the missing rows. Errors   as simulate()
CampaignRun run_problem_campaign(const Problem& problem, const Prior& prior,
                                 const CampaignRunOptions& options, const RunContext& run);

/// Refuses a campaign whose parameters or prior are others than the problem's. Errors   ConfigError
void check_campaign_prior(const CampaignIdentity& stored, const Prior& prior,
                          const std::filesystem::path& folder);

/// Files beside the databases.
namespace files {
inline constexpr std::string_view kCampaign = "campaign.json";
}
std::string progress_file_name(const Shard& shard);

}  // namespace nrec
