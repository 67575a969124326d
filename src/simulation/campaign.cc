#include "nrec/simulation/campaign.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "simulation/row_workers.h"

namespace nrec {

namespace {

constexpr double kSecondsBetweenCommits = 0.5;
constexpr std::size_t kBytesBetweenCommits = 4u << 20;
constexpr std::size_t kReasonsKept =
    200;  // different ones; a simulator that prints a new one each time must not fill memory
constexpr std::size_t kReasonsShown = 10;

std::uint64_t failures_of(const CampaignProgress& progress) {
  return progress.num_new - progress.new_by_status[static_cast<std::size_t>(RowStatus::ok)];
}

std::string percent(std::uint64_t part, std::uint64_t all) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", 100.0 * static_cast<double>(part) / static_cast<double>(all));
  return text;
}

/// Counts of what was added, and of what of it is durable.
class Tally {
 public:
  Tally(std::uint64_t num_wanted, std::uint64_t num_stored) {
    progress_.num_wanted = num_wanted;
    progress_.num_stored = num_stored;
  }

  void add(const RowResult& result) {
    ++added_[static_cast<std::size_t>(result.status)];
    if (result.status == RowStatus::ok) return;
    const std::string name =
        std::string(row_status_name(result.status)) + (result.reason.empty() ? "" : ": " + result.reason);
    if (reasons_.size() < kReasonsKept || reasons_.contains(name)) ++reasons_[name];
  }

  /// Everything added so far is durable now.
  const CampaignProgress& commit(double seconds, std::uint64_t num_running) {
    const std::uint64_t stored_before = progress_.num_stored - progress_.num_new;
    progress_.new_by_status = added_;
    progress_.num_new = 0;
    for (const std::uint64_t count : added_) progress_.num_new += count;
    progress_.num_stored = stored_before + progress_.num_new;
    progress_.num_running = num_running;
    progress_.seconds = seconds;
    progress_.rows_per_second = seconds > 0 ? static_cast<double>(progress_.num_new) / seconds : 0.0;
    progress_.seconds_left =
        progress_.num_new > 0
            ? static_cast<double>(progress_.num_wanted - progress_.num_stored) / progress_.rows_per_second
            : -1.0;
    progress_.reasons.assign(reasons_.begin(), reasons_.end());
    std::ranges::stable_sort(progress_.reasons, std::greater<>(),
                             &std::pair<std::string, std::uint64_t>::second);
    if (progress_.reasons.size() > kReasonsShown) progress_.reasons.resize(kReasonsShown);
    return progress_;
  }

  const CampaignProgress& progress() const { return progress_; }

 private:
  CampaignProgress progress_;
  std::array<std::uint64_t, kNumRowStatuses> added_{};
  std::map<std::string, std::uint64_t> reasons_;
};

/// Takes results from the workers until all rows are there or something ends it.
class Collector {
 public:
  Collector(CampaignWriter& writer, const CampaignOptions& options, const RunContext& run,
            ResultQueue& results, Tally& tally, const std::function<void(const CampaignProgress&)>& on_commit)
      : writer_(writer),
        options_(options),
        run_(run),
        results_(results),
        tally_(tally),
        on_commit_(on_commit) {}

  CampaignStatus collect() {
    for (;;) {
      const bool more = results_.wait(kSecondsBetweenCommits / 5);
      store();
      if (watch_.seconds() - last_commit_ >= kSecondsBetweenCommits) commit();
      if (!more) return CampaignStatus::complete;
      if (run_.stop_requested()) return CampaignStatus::stopped;
      if (watch_.seconds() > run_.time_limit) return CampaignStatus::budget_spent;
      if (has_too_many_failures()) return CampaignStatus::too_many_failures;
    }
  }

  /// What the workers left while they ended.
  void finish() {
    store();
    commit();
  }

  bool has_too_many_failures() const {
    const CampaignProgress& progress = tally_.progress();
    return options_.max_failure_fraction < 1.0 && progress.num_new >= CampaignOptions::kFewestJudged &&
           static_cast<double>(failures_of(progress)) >
               options_.max_failure_fraction * static_cast<double>(progress.num_new);
  }

 private:
  void store() {
    // What comes in meanwhile waits for the next turn: a fast simulator must not keep the caller from looking up.
    for (const SimulatedRow& row : results_.take_all()) {
      tally_.add(row.result);
      writer_.add(row.theta, row.result);
      if (writer_.pending_bytes() >= kBytesBetweenCommits) commit();
    }
  }

  void commit() {
    writer_.commit();
    last_commit_ = watch_.seconds();
    const CampaignProgress& progress = tally_.commit(last_commit_, results_.num_running());
    if (on_commit_) on_commit_(progress);
    const std::uint64_t failed = failures_of(progress);
    run_.log.progress({.stage = "simulation",
                       .done = static_cast<double>(progress.num_stored),
                       .total = static_cast<double>(progress.num_wanted),
                       .unit = "simulation",
                       .seconds_left = progress.seconds_left,
                       .detail = failed ? std::to_string(failed) + " failed" : ""});
  }

  CampaignWriter& writer_;
  const CampaignOptions& options_;
  const RunContext& run_;
  ResultQueue& results_;
  Tally& tally_;
  const std::function<void(const CampaignProgress&)>& on_commit_;
  Stopwatch watch_;
  double last_commit_ = 0.0;
};

std::string end_message(CampaignStatus status, const CampaignProgress& progress,
                        const CampaignOptions& options) {
  const std::uint64_t failed = failures_of(progress);
  std::string counts = std::to_string(progress.num_stored) + " of " + std::to_string(progress.num_wanted) +
                       " simulations are stored";
  if (options.shard.count > 1)
    counts += " (shard " + std::to_string(options.shard.index + 1) + " of " +
              std::to_string(options.shard.count) + ")";
  if (progress.num_new > 0 && progress.num_new < progress.num_stored)
    counts += ", " + std::to_string(progress.num_new) + " of them new";
  if (failed > 0)
    counts += "; " + std::to_string(failed) + " of the " + std::to_string(progress.num_new) +
              " new ones failed (" + percent(failed, progress.num_new) + ", most often \"" +
              progress.reasons.front().first + "\")";
  switch (status) {
    case CampaignStatus::complete:
      return progress.num_new == 0 ? "nothing to do, the campaign is complete: " + counts : counts;
    case CampaignStatus::stopped:
      return "stopped on request; " + counts;
    case CampaignStatus::budget_spent:
      return "time limit reached; " + counts;
    case CampaignStatus::too_many_failures:
      break;
  }
  return counts + "; that is more than max_failure_fraction = " + number_text(options.max_failure_fraction) +
         ": mend the simulator, narrow the prior, or raise max_failure_fraction";
}

}  // namespace

std::string_view campaign_status_name(CampaignStatus status) {
  switch (status) {
    case CampaignStatus::complete:
      return "complete";
    case CampaignStatus::stopped:
      return "stopped";
    case CampaignStatus::budget_spent:
      return "budget spent";
    case CampaignStatus::too_many_failures:
      break;
  }
  return "too many failures";
}

CampaignReport run_campaign(const Prior& prior,
                            const std::function<std::unique_ptr<RowRunner>()>& make_runner,
                            CampaignWriter& writer, const CampaignIdentity& identity,
                            const CampaignOptions& options, const RunContext& run,
                            const std::function<void(const CampaignProgress&)>& on_commit) {
  if (prior.dim() != identity.dim_theta())
    throw ShapeError("campaign: the prior has " + std::to_string(prior.dim()) +
                     " parameters but the campaign " + std::to_string(identity.dim_theta()) +
                     "; use the campaign's own prior");
  MissingRows rows(options.num_simulations, options.shard, writer.stored_rows());
  Tally tally(rows.num_wanted(), rows.num_wanted() - rows.num_left());
  CampaignReport report;
  if (rows.num_left() > 0) {
    const int count = static_cast<int>(std::clamp<std::uint64_t>(
        rows.num_left(), 1, static_cast<std::uint64_t>(std::max(options.workers, 1))));
    ResultQueue results(count);
    const ThetaOfRow theta_of = [&](std::uint64_t row, std::span<double> theta) {
      prior.sample(identity.seed, Stream::prior, row, MatrixView<double>(theta.data(), 1, theta.size()));
    };
    RowWorkers workers({identity.seed, prior.dim(), count, options.rows_per_call}, theta_of, make_runner,
                       rows, results);
    Collector collector(writer, options, run, results, tally, on_commit);
    report.status = collector.collect();
    workers.end();
    collector.finish();
    workers.rethrow_error();
    // The last rows may have come in with the stop.
    if (tally.progress().num_stored == tally.progress().num_wanted) report.status = CampaignStatus::complete;
    // A fast simulator can be over before anyone has looked.
    if (report.status == CampaignStatus::complete && collector.has_too_many_failures())
      report.status = CampaignStatus::too_many_failures;
  }
  report.progress = tally.progress();
  report.message = end_message(report.status, report.progress, options);
  return report;
}

}  // namespace nrec
