#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "inference/chain_draws.h"
#include "inference/chain_starts.h"
#include "nrec/core/error.h"
#include "nrec/core/random.h"
#include "nrec/inference/sample.h"

namespace nrec {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr std::size_t kMostChains = 100;
constexpr std::size_t kTuningSweeps = 50;
constexpr std::size_t kWarmupSweeps = 250;
constexpr std::size_t kThinning = 10;
constexpr double kFirstWidth = 0.01;
constexpr std::size_t kMostSteps = 1000;  // of stepping out, split at random between the sides [Neal2003]
constexpr double kSecondsBetweenUpdates = 0.5;

enum class Phase { lower, upper, shrink };

/// One chain: where it is, and which point it waits for.
struct Chain {
  RandomStream random;
  std::vector<double> u, width;
  std::vector<std::uint32_t> order;
  double log_density = kMinusInfinity;
  std::size_t next_coordinate = 0;  // place in `order`
  double level = 0, lower = 0, upper = 0, trial = 0;
  std::size_t steps_lower = 0, steps_upper = 0;
  Phase phase = Phase::lower;

  std::size_t coordinate() const { return order[next_coordinate]; }
};

/// Coordinate-wise slice sampling of many chains in unbounded space; all chains' pending points go to the network together.
class SliceSampler {
 public:
  SliceSampler(const Posterior& posterior, const SamplingOptions& options, const RunContext& run)
      : posterior_(posterior),
        options_(options),
        run_(run),
        dim_(posterior.prior().dim()),
        wanted_(static_cast<std::size_t>(options.num_samples)) {
    if (!posterior.prior().has_density()) {
      throw UnsupportedError(
          "sampling: method = \"slice\" needs the density of the prior, but the prior is given by samples; "
          "use method = \"rejection\"");
    }
    num_chains_ = std::min(kMostChains, wanted_);
    draws_per_chain_ = (wanted_ + num_chains_ - 1) / num_chains_;
    kept_.resize(num_chains_);
  }

  PosteriorDraws draw() {
    if (!start()) return result(SamplingStatus::no_support);
    const std::size_t sweeps = kWarmupSweeps + draws_per_chain_ * kThinning;
    for (sweep_ = 0; sweep_ < sweeps; ++sweep_) {
      if (run_.stop_requested()) return result(SamplingStatus::stopped);
      if (evaluations_ >= options_.max_evaluations ||
          watch_.seconds() > std::min(options_.max_seconds, run_.time_limit))
        return result(SamplingStatus::budget_spent);
      do_sweep();
      if (sweep_ >= kWarmupSweeps && (sweep_ - kWarmupSweeps + 1) % kThinning == 0) keep();
      report(sweeps);
    }
    return result(SamplingStatus::complete);
  }

 private:
  /// Chains start at prior draws picked with probability proportional to the ratio.
  bool start() {
    const ChainStarts starts = chain_starts(posterior_, num_chains_, options_.max_evaluations, run_);
    evaluations_ += static_cast<std::int64_t>(starts.candidates.rows());
    if (starts.theta.rows() == 0) return false;
    Matrix<double> unbounded(num_chains_, dim_);
    posterior_.prior().to_unbounded(starts.theta, unbounded);
    points_ = unbounded;
    evaluate();
    for (std::size_t c = 0; c < num_chains_; ++c) {
      Chain chain{.random = RandomStream(run_.seed, Stream::chain, c),
                  .u = {},
                  .width = std::vector<double>(dim_, kFirstWidth),
                  .order = std::vector<std::uint32_t>(dim_)};
      chain.u.assign(unbounded.row(c).begin(), unbounded.row(c).end());
      std::iota(chain.order.begin(), chain.order.end(), 0u);
      chain.log_density = density_[c];
      chains_.push_back(std::move(chain));
    }
    return true;
  }

  /// Log density in unbounded space of points_, minus infinity outside the support.
  void evaluate() {
    const std::size_t n = points_.rows();
    if (theta_.rows() != n) theta_ = Matrix<double>(n, dim_);
    density_.resize(n);
    jacobian_.resize(n);
    posterior_.prior().to_constrained(points_, theta_);
    posterior_.log_density(theta_, density_);
    posterior_.prior().log_abs_det_jacobian(points_, jacobian_);
    for (std::size_t i = 0; i < n; ++i)
      density_[i] = std::isnan(jacobian_[i]) ? kMinusInfinity : density_[i] + jacobian_[i];
    evaluations_ += static_cast<std::int64_t>(n);
  }

  void begin_coordinate(Chain& chain) {
    const double current = chain.u[chain.coordinate()];
    const double width = chain.width[chain.coordinate()];
    chain.level = chain.log_density + std::log(chain.random.uniform());
    chain.lower = current - width * chain.random.uniform();
    chain.upper = chain.lower + width;
    chain.steps_lower = static_cast<std::size_t>(chain.random.uniform() * static_cast<double>(kMostSteps));
    chain.steps_upper = kMostSteps - 1 - chain.steps_lower;
    chain.phase = Phase::lower;
    chain.trial = chain.lower;
  }

  void begin_shrinking(Chain& chain) {
    chain.phase = Phase::shrink;
    chain.trial = chain.random.uniform(chain.lower, chain.upper);
  }

  /// Takes the density at the trial point; true when the coordinate is done.
  bool advance(Chain& chain, double log_density) {
    const std::size_t d = chain.coordinate();
    const double width = chain.width[d];
    switch (chain.phase) {
      case Phase::lower:
        if (log_density >= chain.level && chain.steps_lower > 0) {
          --chain.steps_lower;
          chain.trial = chain.lower -= width;
        } else {
          chain.phase = Phase::upper;
          chain.trial = chain.upper;
        }
        return false;
      case Phase::upper:
        if (log_density >= chain.level && chain.steps_upper > 0) {
          --chain.steps_upper;
          chain.trial = chain.upper += width;
        } else {
          begin_shrinking(chain);
        }
        return false;
      case Phase::shrink:
        break;
    }
    const double current = chain.u[d];
    if (log_density >= chain.level) {
      chain.u[d] = chain.trial;
      chain.log_density = log_density;
    } else {
      (chain.trial < current ? chain.lower : chain.upper) = chain.trial;
      // A bracket of neighbouring numbers cannot shrink: stay, which leaves the distribution as it is.
      if (chain.upper > std::nextafter(chain.lower, chain.upper)) {
        begin_shrinking(chain);
        return false;
      }
    }
    if (sweep_ <= kTuningSweeps)
      chain.width[d] += ((chain.upper - chain.lower) - width) / static_cast<double>(sweep_ + 1);
    return true;
  }

  /// Every chain updates every coordinate once, in its own random order.
  void do_sweep() {
    std::vector<std::size_t> active(num_chains_);
    std::iota(active.begin(), active.end(), std::size_t{0});
    for (Chain& chain : chains_) {
      chain.random.shuffle(chain.order);
      chain.next_coordinate = 0;
      begin_coordinate(chain);
    }
    while (!active.empty()) {
      points_ = Matrix<double>(active.size(), dim_);
      for (std::size_t i = 0; i < active.size(); ++i) {
        const Chain& chain = chains_[active[i]];
        std::copy(chain.u.begin(), chain.u.end(), points_.row(i).begin());
        points_(i, chain.coordinate()) = chain.trial;
      }
      evaluate();
      std::vector<std::size_t> still;
      for (std::size_t i = 0; i < active.size(); ++i) {
        Chain& chain = chains_[active[i]];
        if (advance(chain, density_[i])) {
          if (++chain.next_coordinate == dim_) continue;
          begin_coordinate(chain);
        }
        still.push_back(active[i]);
      }
      active = std::move(still);
    }
  }

  void keep() {
    for (std::size_t c = 0; c < num_chains_; ++c) kept_[c].push_back(chains_[c].u);
  }

  void report(std::size_t sweeps) {
    if (watch_.seconds() - last_update_ < kSecondsBetweenUpdates) return;
    last_update_ = watch_.seconds();
    ProgressUpdate update;
    update.stage = "sampling";
    update.unit = "sweep";
    update.done = static_cast<double>(sweep_ + 1);
    update.total = static_cast<double>(sweeps);
    update.seconds_left = watch_.seconds() * (update.total - update.done) / update.done;
    update.detail = "slice, " + std::to_string(num_chains_) + " chains";
    run_.log.progress(update);
  }

  PosteriorDraws result(SamplingStatus status) {
    PosteriorDraws draws;
    draws.method = "slice";
    draws.status = status;
    const double worst = collect_chains(posterior_, posterior_.prior(), kept_, 1, wanted_, draws);
    draws.message = message(draws.status, draws.size(), worst);
    draws.statistics.set("evaluations", static_cast<double>(evaluations_));
    draws.statistics.set("thinning", kThinning);
    draws.statistics.set("warmup_sweeps", kWarmupSweeps);
    draws.statistics.set("non_finite_log_ratios", posterior_.num_non_finite());
    draws.statistics.set("seconds", watch_.seconds());
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
    std::snprintf(number, sizeof number, "%.3g",
                  sweep_ == 0
                      ? 0.0
                      : watch_.seconds() / static_cast<double>(sweep_) *
                            static_cast<double>(kWarmupSweeps + draws_per_chain_ * kThinning - sweep_));
    return have + "; the budget is spent; the rest would take about " + number + " s more";
  }

  const Posterior& posterior_;
  const SamplingOptions& options_;
  const RunContext& run_;
  std::size_t dim_, wanted_, num_chains_ = 0, draws_per_chain_ = 0;
  Stopwatch watch_;
  double last_update_ = 0.0;
  std::int64_t evaluations_ = 0;
  std::size_t sweep_ = 0;
  std::vector<Chain> chains_;
  VisitedPoints kept_;
  Matrix<double> points_, theta_;
  std::vector<double> density_, jacobian_;
};

}  // namespace

PosteriorDraws sample_by_slice(const Posterior& posterior, const SamplingOptions& options,
                               const RunContext& run) {
  return SliceSampler(posterior, options, run).draw();
}

}  // namespace nrec
