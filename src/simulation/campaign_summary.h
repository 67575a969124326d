#pragma once

#include "nrec/simulation/campaign_store.h"
#include "simulation/campaign_folder.h"

namespace nrec::simulation {

// Counts of what the readable databases hold, in one pass that does not touch x.
// Memory   a note per different reason of failure, of which only so many are told apart
CampaignSummary summarise(const OpenFolder& open, const CampaignIdentity& identity);

}  // namespace nrec::simulation
