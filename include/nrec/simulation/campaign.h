#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nrec/core/run_context.h"
#include "nrec/priors/prior.h"
#include "nrec/simulation/campaign_store.h"
#include "nrec/simulation/row_runner.h"

namespace nrec {

/// Which rows, and how many at a time.
struct CampaignOptions {
  std::uint64_t num_simulations = 0;  // rows 0 .. num_simulations - 1 of the campaign, over all shards
  Shard shard;
  int workers = 1;                // rows that run side by side, >= 1
  std::size_t rows_per_call = 1;  // fewest rows that a worker takes at once, where so many are left
  double max_failure_fraction =
      0.9;  // of the rows of this call, once there are kFewestJudged: more ends it; 1: never

  static constexpr std::uint64_t kFewestJudged = 100;
};

/// Why a campaign ended.
enum class CampaignStatus {
  complete,           // every row asked for is stored
  stopped,            // on request; the same call goes on
  budget_spent,       // time limit; the same call goes on
  too_many_failures,  // the simulator is broken, or the prior reaches where it does not work
};
/// "complete", "stopped", "budget spent", "too many failures".
std::string_view campaign_status_name(CampaignStatus status);

/// Where a campaign stands. Only rows that are durable are counted.
struct CampaignProgress {
  std::uint64_t num_wanted = 0;  // rows of this shard below num_simulations
  std::uint64_t num_stored = 0;  // of them, by this call or before
  std::uint64_t num_new = 0;     // by this call
  std::uint64_t num_running = 0;
  std::array<std::uint64_t, kNumRowStatuses> new_by_status{};
  std::vector<std::pair<std::string, std::uint64_t>>
      reasons;  // of new failures, most frequent first, at most 10
  double seconds = 0.0;
  double rows_per_second = 0.0;
  double seconds_left = -1.0;  // negative: unknown
};

/// What running a campaign came to.
struct CampaignReport {
  CampaignStatus status = CampaignStatus::complete;
  std::string message;  // one sentence
  CampaignProgress progress;
};

/// Draws theta of every row that is missing from the prior, runs it on one of the workers and stores what comes out.
///
/// Row i is a pure function of (seed, i): the same rows come out for any number of workers and shards, and after any
/// number of ends and starts. Rows are committed together at least every half second or 4 MB and count from then on.
/// Memory does not grow with the number of rows beyond 8 bytes for each that was stored before.
///
/// Errors   ShapeError: the prior and the campaign have different numbers of parameters; IoError: the disk is full or
///          fails (committed rows are safe, the same call goes on); those of the runners
CampaignReport run_campaign(const Prior& prior,
                            const std::function<std::unique_ptr<RowRunner>()>& make_runner,
                            CampaignWriter& writer, const CampaignIdentity& identity,
                            const CampaignOptions& options, const RunContext& run,
                            const std::function<void(const CampaignProgress&)>& on_commit = {});

}  // namespace nrec
