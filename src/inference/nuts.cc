#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "inference/chain_draws.h"
#include "inference/chain_starts.h"
#include "inference/nuts_report.h"
#include "inference/nuts_tree.h"
#include "inference/nuts_warmup.h"
#include "inference/sampling_budget.h"
#include "nrec/core/error.h"
#include "nrec/inference/sample.h"

namespace nrec {

namespace {

constexpr std::size_t kMostChains = 24;
constexpr std::size_t kWarmup = 150;
// After the warm-up; where fewer draws are wanted, they are thinned, because R-hat cannot judge short chains.
constexpr std::size_t kLeastIterations = 250;
constexpr std::size_t kJumps = 4;  // before a transition, which costs some ten times as much
constexpr double kTargetAcceptance = 0.8;
constexpr int kMostStepSizeTrials = 100;  // doublings or halvings: 30 powers of ten
constexpr double kSecondsBetweenUpdates = 0.5;

/// The no-U-turn sampler for many chains at once: the pending leapfrog steps of all chains go to the network together. Step
/// size and variances are common to all chains and learned from all of them.
class NutsSampler {
 public:
  NutsSampler(const Posterior& posterior, const SamplingOptions& options, const RunContext& run)
      : posterior_(posterior),
        space_(posterior.unbounded_prior()),
        run_(run),
        dim_(space_.dim()),
        wanted_(static_cast<std::size_t>(options.num_samples)),
        num_chains_(std::min(kMostChains, wanted_)),
        thinning_(thinning_for((wanted_ + num_chains_ - 1) / num_chains_)),
        draws_per_chain_((wanted_ + num_chains_ - 1) / num_chains_),
        length_(draws_per_chain_ * thinning_),
        budget_(options, run),
        warmup_(kWarmup),
        averaging_(kTargetAcceptance),
        variance_(num_chains_, dim_),
        trees_(num_chains_, NutsTree(dim_)),
        visited_(num_chains_),
        transitions_(num_chains_) {}

  PosteriorDraws draw() {
    if (!start() || !find_step_size()) return result(ended_);
    do {
      if (!advance()) {
        // The draws are all there; only the doubt about them could not be settled.
        const bool has_all = length_.is_extended() && ended_ == SamplingStatus::budget_spent;
        return result(has_all ? SamplingStatus::complete : ended_);
      }
    } while (length_.extend(largest_r_hat(r_hats(space_, visited_))));
    return result(SamplingStatus::complete);
  }

 private:
  std::size_t iterations() const { return warmup_.length() + length_.total(); }

  /// Goes on to the present length; false when the budget ended first.
  bool advance() {
    for (; iteration_ < iterations(); ++iteration_) {
      // The jumps come first, so that the transition's energy is that of the point which is kept.
      if (!jump() || !transition()) return false;
      if (iteration_ < warmup_.length()) {
        if (!learn()) return false;
      } else {
        keep();
      }
      report();
    }
    return true;
  }

  static std::size_t thinning_for(std::size_t draws) { return (kLeastIterations + draws - 1) / draws; }

  /// Where chains start, and the prior's spread as a first guess of the variances; false when the run must end instead.
  bool start() {
    const TemperedPopulation population = temper(posterior_, budget_, run_);
    ended_ = population.status;
    if (ended_ != SamplingStatus::complete) return false;
    ended_ = budget_.reason_to_end(num_chains_);
    if (ended_ != SamplingStatus::complete) return false;
    num_stages_ = population.num_stages;
    for (const double width : population.width) inverse_mass_.push_back(width * width);
    jumps_.emplace(mode_jumps(population));
    const std::vector<TemperedPoint> starts = chain_starts(population, num_chains_);
    Matrix<double> u(num_chains_, dim_);
    for (std::size_t c = 0; c < num_chains_; ++c)
      std::copy(starts[c].u.begin(), starts[c].u.end(), u.row(c).begin());
    evaluate(u);
    std::size_t good = num_chains_;  // the first chain that starts where the density is not zero
    for (std::size_t c = num_chains_; c-- > 0;) {
      if (std::isfinite(density_[c])) good = c;
    }
    if (good == num_chains_) {
      ended_ = SamplingStatus::no_support;
      return false;
    }
    for (std::size_t c = 0; c < num_chains_; ++c) {
      const std::size_t from = std::isfinite(density_[c]) ? c : good;
      chains_.push_back({.u = {u.row(from).begin(), u.row(from).end()},
                         .gradient = {gradient_.row(from).begin(), gradient_.row(from).end()},
                         .log_density = density_[from]});
    }
    return true;
  }

  /// Log density and gradient at rows of u.
  void evaluate(const Matrix<double>& u) {
    density_.resize(u.rows());
    gradient_ = Matrix<double>(u.rows(), dim_);
    posterior_.log_density_gradient(u, density_, gradient_);
    budget_.spend(u.rows());
  }

  /// Numbers of chain c: a pure function of (seed, chain, iteration). `purpose` tells apart those of one iteration.
  RandomStream random_of(std::size_t chain, std::size_t iteration, std::uint64_t purpose) const {
    const std::uint64_t row = ((chain + 1) << 40) | (purpose << 36) | iteration;
    return RandomStream(run_.seed, Stream::chain, row);
  }

  /// Gives every tree in `active` the density at its pending point, once; false when the run must end instead.
  bool step(std::vector<std::size_t>& active) {
    ended_ = budget_.reason_to_end(active.size());
    if (ended_ != SamplingStatus::complete) return false;
    Matrix<double> points(active.size(), dim_);
    for (std::size_t i = 0; i < active.size(); ++i) {
      const std::span<const double> pending = trees_[active[i]].pending();
      std::copy(pending.begin(), pending.end(), points.row(i).begin());
    }
    evaluate(points);
    for (std::size_t i = 0; i < active.size(); ++i) trees_[active[i]].receive(density_[i], gradient_.row(i));
    std::erase_if(active, [&](std::size_t c) { return trees_[c].is_done(); });
    return true;
  }

  std::vector<std::size_t> begin_trees(std::uint64_t purpose) {
    std::vector<std::size_t> active;
    for (std::size_t c = 0; c < num_chains_; ++c) {
      trees_[c].begin(chains_[c], inverse_mass_, step_size_, random_of(c, iteration_, purpose));
      if (!trees_[c].is_done()) active.push_back(c);
    }
    return active;
  }

  /// Every chain tries some jumps to other modes; false when the run must end first. Values decide; the gradient is asked for
  /// where a chain has moved.
  bool jump() {
    std::vector<RandomStream> random;
    for (std::size_t c = 0; c < num_chains_; ++c) random.push_back(random_of(c, iteration_, 2));
    std::vector<bool> has_moved(num_chains_);
    const std::vector<ChainPoint> before = chains_;
    Matrix<double> u(num_chains_, dim_);
    for (std::size_t attempt = 0; attempt < kJumps; ++attempt) {
      ended_ = budget_.reason_to_end(num_chains_);
      if (ended_ != SamplingStatus::complete) return false;
      for (std::size_t c = 0; c < num_chains_; ++c)
        jumps_->propose(chains_[c].u, attempt % 2 == 0, random[c], u.row(c));
      const TemperedValues values = evaluate_tempered(posterior_, u, budget_);
      for (std::size_t c = 0; c < num_chains_; ++c) {
        const double log_density = values.log_prior[c] + values.log_ratio[c];
        if (log_density < chains_[c].log_density + std::log(random[c].uniform())) continue;
        chains_[c].u.assign(u.row(c).begin(), u.row(c).end());
        chains_[c].log_density = log_density;
        has_moved[c] = true;
        ++jumps_accepted_;
      }
      jumps_tried_ += num_chains_;
    }
    return renew_gradients(has_moved, before);
  }

  bool renew_gradients(const std::vector<bool>& of_chain, const std::vector<ChainPoint>& before) {
    std::vector<std::size_t> rows;
    for (std::size_t c = 0; c < num_chains_; ++c) {
      if (of_chain[c]) rows.push_back(c);
    }
    if (rows.empty()) return true;
    ended_ = budget_.reason_to_end(rows.size());
    if (ended_ != SamplingStatus::complete) return false;
    Matrix<double> u(rows.size(), dim_);
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::copy(chains_[rows[i]].u.begin(), chains_[rows[i]].u.end(), u.row(i).begin());
    evaluate(u);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ChainPoint& chain = chains_[rows[i]];
      if (std::isfinite(density_[i])) {
        chain.log_density = density_[i];
        chain.gradient.assign(gradient_.row(i).begin(), gradient_.row(i).end());
      } else {  // at the edge of what doubles can hold, where value and gradient disagree
        chain = before[rows[i]];
      }
    }
    return true;
  }

  /// One transition of every chain; false when the run must end first.
  bool transition() {
    std::vector<std::size_t> active = begin_trees(0);
    while (!active.empty()) {
      if (!step(active)) return false;
    }
    acceptance_ = 0.0;
    for (std::size_t c = 0; c < num_chains_; ++c) {
      chains_[c] = trees_[c].result();
      acceptance_ += trees_[c].statistics().acceptance_rate / static_cast<double>(num_chains_);
    }
    return true;
  }

  /// Doubles or halves the step size until the acceptance of one step crosses the target [Hoffman2014, alg. 4].
  bool find_step_size() {
    bool was_accepted = false;
    for (int trial = 0; trial < kMostStepSizeTrials; ++trial) {
      std::vector<std::size_t> active = begin_trees(1);
      if (!active.empty() && !step(active)) return false;
      double acceptance = 0.0;
      for (const NutsTree& tree : trees_)
        acceptance += tree.statistics().acceptance_rate / static_cast<double>(num_chains_);
      const bool is_accepted = acceptance > kTargetAcceptance;
      if (trial > 0 && is_accepted != was_accepted) break;
      was_accepted = is_accepted;
      step_size_ *= is_accepted ? 2.0 : 0.5;
    }
    averaging_.restart(step_size_);
    return true;
  }

  /// Step size and variances from the transition just made; false when the run must end first.
  bool learn() {
    step_size_ = averaging_.next(acceptance_);
    if (warmup_.is_in_window(iteration_)) {
      for (std::size_t c = 0; c < num_chains_; ++c) variance_.add(c, chains_[c].u);
    }
    if (warmup_.ends_window(iteration_)) {
      inverse_mass_ = variance_.take(inverse_mass_);
      return find_step_size();
    }
    if (iteration_ + 1 == warmup_.length()) step_size_ = averaging_.averaged();
    return true;
  }

  void keep() {
    for (std::size_t c = 0; c < num_chains_; ++c) {
      visited_[c].push_back(chains_[c].u);
      transitions_[c].push_back(trees_[c].statistics());
    }
  }

  void report() {
    if (budget_.seconds() - last_update_ < kSecondsBetweenUpdates) return;
    last_update_ = budget_.seconds();
    ProgressUpdate update;
    update.stage = "sampling";
    update.unit = "iteration";
    update.done = static_cast<double>(iteration_ + 1);
    update.total = static_cast<double>(iterations());
    update.seconds_left = seconds_left();
    update.detail = "nuts, " + std::to_string(num_chains_) + " chains" +
                    (iteration_ < warmup_.length() ? ", warm-up" : "");
    run_.log.progress(update);
  }

  /// The next iterations cost what those so far did; negative before the first.
  double seconds_left() const {
    if (iteration_ == 0) return -1.0;
    return budget_.seconds() / static_cast<double>(iteration_) *
           static_cast<double>(iterations() - iteration_);
  }

  PosteriorDraws result(SamplingStatus status) {
    PosteriorDraws draws;
    draws.method = "nuts";
    draws.status = status;
    const std::size_t thinning = std::max(thinning_, visited_.front().size() / draws_per_chain_);
    keep_last(visited_, draws_per_chain_ * thinning);
    keep_last(transitions_, draws_per_chain_ * thinning);
    const double worst = collect_chains(posterior_, space_, visited_, thinning, wanted_, draws);
    add_transitions(transitions_, thinning, draws);
    draws.statistics.set("evaluations", static_cast<double>(budget_.evaluations()));
    draws.statistics.set("step_size", step_size_);
    draws.statistics.set("tempering_stages", num_stages_);
    draws.statistics.set(
        "jump_rate",
        jumps_tried_ ? static_cast<double>(jumps_accepted_) / static_cast<double>(jumps_tried_) : 0.0);
    draws.statistics.set("warmup_iterations", warmup_.length());
    draws.statistics.set("non_finite_log_ratios", posterior_.num_non_finite());
    draws.message = nuts_message(draws, wanted_, num_chains_, worst, seconds_left());
    draws.statistics.set("seconds", budget_.seconds());
    return draws;
  }

  const Posterior& posterior_;
  const Prior& space_;
  const RunContext& run_;
  std::size_t dim_, wanted_, num_chains_, thinning_, draws_per_chain_;
  RunLength length_;
  SamplingBudget budget_;
  double last_update_ = 0.0;
  std::size_t iteration_ = 0;
  WarmupSchedule warmup_;
  DualAveraging averaging_;
  PooledVariance variance_;
  double step_size_ = 1.0, acceptance_ = 0.0;
  std::vector<double> inverse_mass_;
  std::optional<ModeJumps> jumps_;
  std::size_t num_stages_ = 0, jumps_tried_ = 0, jumps_accepted_ = 0;
  std::vector<NutsTree> trees_;
  std::vector<ChainPoint> chains_;
  SamplingStatus ended_ = SamplingStatus::complete;
  VisitedPoints visited_;
  Transitions transitions_;
  std::vector<double> density_;
  Matrix<double> gradient_;
};

}  // namespace

PosteriorDraws sample_by_nuts(const Posterior& posterior, const SamplingOptions& options,
                              const RunContext& run) {
  if (!posterior.prior().has_density()) {
    throw UnsupportedError(
        "sampling: method = \"nuts\" needs the density of the prior, but the prior is given by samples; "
        "use method = \"rejection\"");
  }
  if (!posterior.has_gradient()) {
    throw UnsupportedError(
        "sampling: method = \"nuts\" needs the gradient of the log ratio, but it was given without one; use "
        "method = \"slice\"");
  }
  return NutsSampler(posterior, options, run).draw();
}

}  // namespace nrec
