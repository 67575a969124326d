#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "nrec/commands/infer.h"
#include "nrec/simulation/campaign.h"

namespace nrec {

/// What only simulating needs to know.
struct SimulateOptions {
  std::string out;  // folder of the campaign; empty: simulations.campaign, else by the problem file's name
  std::string
      shard;  // "3/16": the third of sixteen; empty: of the job array that this process belongs to, else all
  bool accept_changes = false;  // go on though the problem or the simulator is not the one of the stored rows
};

/// Flags --out, --shard, --accept-changes.
void describe(OptionTable& table, SimulateOptions& options);

/// "3/16" -> {2, 16}. Errors   UsageError: not two whole numbers with 1 <= first <= second
Shard parse_shard(const std::string& text);

/// Where the rows of a problem are stored: simulations.campaign, else <name of the problem file>_campaign in the current
/// folder.
std::filesystem::path campaign_folder(const Problem& problem);

/// Makes the rows of a problem's campaign that are missing, durably; see run_campaign(). A pre-flight of a few runs comes
/// before the first row of a campaign. Leaves campaign.json (how it is made) and progress-*.json (how far it is) beside
/// the databases.
///
/// Errors   ConfigError: no simulator, a simulator that does not work, a campaign of another problem, simulator or seed;
///          IoError; UsageError: shard
CommandResult simulate(const Problem& problem, const SimulateOptions& options, const OutputOptions& output,
                       const RunContext& run);

/// What to export, and where to.
struct ExportOptions {
  std::string campaign;              // its folder
  std::string out;                   // .npz file; empty: <campaign>.npz
  std::int64_t num_simulations = 0;  // rows 0 .. n - 1; 0: all
  bool overwrite = false;
};

/// Flags --out, --num-simulations, --overwrite.
void describe(OptionTable& table, ExportOptions& options);

/// A campaign as one .npz file: theta [N, D], x [N, ...], status [N] (numbers of RowStatus). Failed rows are there,
/// with x = nan.
///
/// Errors   those of CampaignReader; ConfigError: the file exists
CommandResult export_campaign(const ExportOptions& options, const OutputOptions& output,
                              const RunContext& run);

}  // namespace nrec
