#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "inference/chain_draws.h"
#include "inference/chain_ensemble.h"
#include "inference/chain_starts.h"
#include "inference/sampling_budget.h"
#include "nrec/core/error.h"
#include "nrec/inference/sample.h"

namespace nrec {

namespace {

constexpr std::size_t kMostChains = 100;
constexpr std::size_t kLeastChains = 24;  // for few draws: R-hat wants long chains rather than many
constexpr std::size_t kTuningSweeps = 50;
constexpr std::size_t kWarmupSweeps = 100;
constexpr std::size_t kThinning = 10;
// After the warm-up; where fewer draws are wanted, they are thinned more, because R-hat cannot judge short chains.
constexpr std::size_t kLeastSweeps = 250;
constexpr double kSecondsBetweenUpdates = 0.5;

std::size_t quotient_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

/// Slice sampling of chains that start from a tempered population and jump between its modes.
class SliceSampler {
 public:
  SliceSampler(const Posterior& posterior, const SamplingOptions& options, const RunContext& run)
      : posterior_(posterior),
        run_(run),
        wanted_(static_cast<std::size_t>(options.num_samples)),
        num_chains_(
            std::min(wanted_, std::clamp(wanted_ * kThinning / kLeastSweeps, kLeastChains, kMostChains))),
        draws_per_chain_(quotient_up(wanted_, num_chains_)),
        thinning_(std::max(kThinning, quotient_up(kLeastSweeps, draws_per_chain_))),
        stored_every_(draws_per_chain_ < kLeastSweeps ? 1 : thinning_),
        length_(draws_per_chain_ * thinning_),
        budget_(options, run),
        visited_(num_chains_) {}

  PosteriorDraws draw() {
    const TemperedPopulation population = temper(posterior_, budget_, run_);
    num_stages_ = population.num_stages;
    if (population.status != SamplingStatus::complete) return result(population.status);
    chains_.emplace(posterior_, budget_, run_.seed, 0, chain_starts(population, num_chains_),
                    population.width);
    const ModeJumps jumps = mode_jumps(population);
    do {
      if (!advance(jumps)) {
        const SamplingStatus reason = budget_.reason_to_end(num_chains_);
        // The draws are all there; only the doubt about them could not be settled.
        const bool has_all = length_.is_extended() && reason == SamplingStatus::budget_spent;
        return result(has_all ? SamplingStatus::complete : reason);
      }
    } while (length_.extend(largest_r_hat(r_hats(posterior_.unbounded_prior(), visited_))));
    return result(SamplingStatus::complete);
  }

 private:
  std::size_t sweeps() const { return kWarmupSweeps + length_.total(); }

  /// Goes on to the present length; false when the budget ended first.
  bool advance(const ModeJumps& jumps) {
    for (; sweep_ < sweeps(); ++sweep_) {
      if (!chains_->sweep(1.0) || !chains_->jump(jumps, 1.0)) return false;
      if (sweep_ < kTuningSweeps) chains_->adapt_widths(1.0 / static_cast<double>(sweep_ + 1));
      if (sweep_ >= kWarmupSweeps && (sweep_ - kWarmupSweeps + 1) % stored_every_ == 0) keep();
      report();
    }
    return true;
  }

  void keep() {
    for (std::size_t c = 0; c < num_chains_; ++c) visited_[c].push_back(chains_->points()[c].u);
  }

  double seconds_left() const {
    if (sweep_ == 0) return 0.0;
    return budget_.seconds() / static_cast<double>(sweep_) * static_cast<double>(sweeps() - sweep_);
  }

  void report() {
    if (budget_.seconds() - last_update_ < kSecondsBetweenUpdates) return;
    last_update_ = budget_.seconds();
    run_.log.progress({.stage = "sampling",
                       .done = static_cast<double>(sweep_ + 1),
                       .total = static_cast<double>(sweeps()),
                       .unit = "sweep",
                       .seconds_left = seconds_left(),
                       .detail = "slice, " + std::to_string(num_chains_) + " chains"});
  }

  PosteriorDraws result(SamplingStatus status) {
    PosteriorDraws draws;
    draws.method = "slice";
    draws.status = status;
    const std::size_t thinning =
        std::max(thinning_ / stored_every_, visited_.front().size() / draws_per_chain_);
    keep_last(visited_, draws_per_chain_ * thinning);
    const double worst =
        collect_chains(posterior_, posterior_.unbounded_prior(), visited_, thinning, wanted_, draws);
    draws.message = message(draws.status, draws.size(), worst);
    draws.statistics.set("evaluations", static_cast<double>(budget_.evaluations()));
    draws.statistics.set("thinning", thinning * stored_every_);
    draws.statistics.set("warmup_sweeps", kWarmupSweeps);
    draws.statistics.set("tempering_stages", num_stages_);
    draws.statistics.set("jump_rate", chains_ ? chains_->jump_rate() : 0.0);
    draws.statistics.set("non_finite_log_ratios", posterior_.num_non_finite());
    draws.statistics.set("seconds", budget_.seconds());
    return draws;
  }

  std::string message(SamplingStatus status, std::size_t n, double worst) const {
    char number[32];
    std::snprintf(number, sizeof number, "%.3f", worst);
    const std::string have = std::to_string(n) + " of " + std::to_string(wanted_) +
                             " draws by slice sampling, " + std::to_string(num_chains_) + " chains";
    switch (status) {
      case SamplingStatus::complete:
        return have + ", largest R-hat " + number;
      case SamplingStatus::chains_disagree:
        return have + ", largest R-hat " + number +
               " (above 1.05): the chains disagree, perhaps on the weights of separate modes; use method = "
               "\"rejection\" with a larger budget";
      case SamplingStatus::no_support:
        return have +
               ": the ratio was zero or not finite at all prior draws; check the observation against the "
               "simulations";
      case SamplingStatus::stopped:
        return have + "; stopped on request";
      case SamplingStatus::weights_unreliable:  // not of slice sampling
      case SamplingStatus::budget_spent:
        break;
    }
    if (sweep_ == 0)
      return have +
             "; the budget is spent before the first sweep: it went on where the chains start; raise it";
    std::snprintf(number, sizeof number, "%.3g", seconds_left());
    return have + "; the budget is spent; the rest would take about " + number + " s more";
  }

  const Posterior& posterior_;
  const RunContext& run_;
  std::size_t wanted_, num_chains_, draws_per_chain_, thinning_, stored_every_;
  RunLength length_;
  SamplingBudget budget_;
  VisitedPoints visited_;
  std::optional<ChainEnsemble> chains_;
  std::size_t sweep_ = 0, num_stages_ = 0;
  double last_update_ = 0.0;
};

}  // namespace

PosteriorDraws sample_by_slice(const Posterior& posterior, const SamplingOptions& options,
                               const RunContext& run) {
  if (!posterior.prior().has_density()) {
    throw UnsupportedError(
        "sampling: method = \"slice\" needs the density of the prior, but the prior is given by samples; "
        "use method = \"rejection\"");
  }
  return SliceSampler(posterior, options, run).draw();
}

}  // namespace nrec
