#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nrec/commands/infer.h"
#include "nrec/commands/output_folder.h"
#include "nrec/commands/problem.h"
#include "nrec/core/options.h"
#include "nrec/core/run_context.h"

namespace nrec {

/// What `nrec experiment list` says of an experiment.
struct ExperimentInfo {
  std::string name;     // "fig5"
  std::string summary;  // what is shown
};

/// All experiments, in the order of the paper.
const std::vector<ExperimentInfo>& experiments();

/// Which experiment, how large, and what is other than published.
struct ExperimentOptions {
  std::string name;
  std::string size = "medium";             // "quick" | "medium" | "full"
  bool faithful = false;                   // with the quirks of the published code
  std::vector<std::string> tasks;          // empty: those of the experiment and size; the same below
  std::vector<std::string> regimes;        // of fixed, prior, joint
  std::vector<std::string> architectures;  // of small, large
  std::vector<std::string> gammas;
  std::vector<std::string> counts;   // contrastive parameters, K + 1 for NRE-C, atoms for NRE-B
  std::vector<std::string> budgets;  // simulations of the tables and of verdicts
  std::vector<std::string> seeds;    // empty: 1
  std::vector<std::string> observations;
  std::string sbibm;  // folder of the published benchmark; empty: nrec's own observations
  std::string
      anchors;  // folder with tables of published numbers; empty: claims that need them are not tested
  /// verdicts: folder of a benchmark whose networks are checked; empty: networks of its own.
  std::string benchmark;
  std::int64_t parallel = 0;  // networks side by side; 0: as memory and threads allow
  /// Flags of [network], [training], [sampling] on top of what the experiment sets.
  std::vector<OptionOverride> settings;
};

/// Flags of an experiment; those of [network], [training] and [sampling] are not among them, but go to `settings`.
void describe(OptionTable& table, ExperimentOptions& options);

/// How a claim of the paper fared.
enum class ClaimState { reproduced, not_reproduced, not_tested };
/// "reproduced", "not reproduced", "not tested".
std::string_view claim_state_name(ClaimState state);

/// One sentence of the paper with what was found.
struct Claim {
  std::string text;  // what is claimed
  ClaimState state = ClaimState::not_tested;
  std::string found;   // what was measured, with numbers
  std::string anchor;  // the published number beside it; empty: none
};

/// What an experiment hands back; its files are written.
struct ExperimentResult {
  CommandResult command;
  std::vector<Claim> claims;
};

/// One figure or table of the paper: networks -> tidy tables, a figure, and a line per claim.
///
/// Networks and their measurements are kept in the folder and shared by all experiments that use it; the same command goes
/// on after any end. Writes NAME.csv (and NAME_*.csv), NAME.gp, NAME.svg, NAME.png, NAME_claims.csv and record.json.
/// docs/howto/experiment.md
///
/// Errors   UsageError: unknown name, lists, settings that the experiment decides; those of benchmark()
ExperimentResult run_experiment(const ExperimentOptions& options, const OutputOptions& output,
                                const RunContext& run);

}  // namespace nrec
