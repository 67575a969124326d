#include "inference/nuts_report.h"

#include <cstdio>

namespace nrec {

namespace {

/// Trajectories that end at the largest tree are cut short; a few do no harm.
constexpr double kManyLongTrees = 0.01;

std::string digits(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::int64_t count_of(const PosteriorDraws& draws, const char* name) {
  const RecordValue* value = draws.statistics.find(name);
  return value ? std::get<std::int64_t>(*value) : 0;
}

std::string warnings(const PosteriorDraws& draws) {
  std::string text;
  const std::int64_t divergences = count_of(draws, "divergences");
  if (divergences > 0) {
    text += "; " + std::to_string(divergences) +
            " transitions diverged: somewhere the posterior bends more sharply than the step size can "
            "follow, and "
            "that region may be missing; compare with method = \"slice\"";
  }
  const std::int64_t longest = count_of(draws, "reached_max_treedepth");
  if (static_cast<double>(longest) > kManyLongTrees * static_cast<double>(count_of(draws, "transitions"))) {
    text += "; " + std::to_string(longest) + " transitions took the most steps that are allowed (" +
            std::to_string((1 << NutsTree::kMaxDepth) - 1) +
            "): the posterior is much longer than it is wide, look at the effective sample sizes";
  }
  return text;
}

}  // namespace

namespace {

void add_totals(const Transitions& transitions, Record& statistics) {
  double acceptance = 0.0, energy = 0.0, depth = 0.0, steps = 0.0, n = 0.0;
  std::int64_t divergences = 0, longest = 0;
  for (const std::vector<TransitionStatistics>& chain : transitions) {
    for (const TransitionStatistics& t : chain) {
      acceptance += t.acceptance_rate;
      energy += t.energy;
      depth += t.tree_depth;
      steps += t.n_steps;
      divergences += t.diverging;
      longest += t.tree_depth == NutsTree::kMaxDepth;
      n += 1.0;
    }
  }
  statistics.set("acceptance_rate", acceptance / n);
  statistics.set("tree_depth", depth / n);
  statistics.set("n_steps", steps / n);
  statistics.set("energy", energy / n);
  statistics.set("divergences", RecordValue(divergences));
  statistics.set("reached_max_treedepth", RecordValue(longest));
  statistics.set("transitions", RecordValue(static_cast<std::int64_t>(n)));
}

}  // namespace

void add_transitions(const Transitions& transitions, std::size_t thinning, PosteriorDraws& draws) {
  if (draws.size() == 0) return;
  add_totals(transitions, draws.statistics);
  std::vector<double> acceptance, depth, steps, energy, diverging;
  for (const std::vector<TransitionStatistics>& chain : transitions) {
    for (std::size_t i = thinning - 1; i < chain.size() && steps.size() < draws.size(); i += thinning) {
      acceptance.push_back(chain[i].acceptance_rate);
      depth.push_back(chain[i].tree_depth);
      steps.push_back(chain[i].n_steps);
      energy.push_back(chain[i].energy);
      diverging.push_back(chain[i].diverging ? 1.0 : 0.0);
    }
  }
  draws.per_draw = {{"acceptance_rate", std::move(acceptance)},
                    {"tree_depth", std::move(depth)},
                    {"n_steps", std::move(steps)},
                    {"energy", std::move(energy)},
                    {"diverging", std::move(diverging)}};
}

std::string nuts_message(const PosteriorDraws& draws, std::size_t wanted, std::size_t num_chains,
                         double largest_r_hat, double seconds_left) {
  const std::string have = std::to_string(draws.size()) + " of " + std::to_string(wanted) +
                           " draws by the no-U-turn sampler, " + std::to_string(num_chains) + " chains";
  const std::string agreement = ", largest R-hat " + digits("%.3f", largest_r_hat);
  switch (draws.status) {
    case SamplingStatus::complete:
      return have + agreement + warnings(draws);
    case SamplingStatus::chains_disagree:
      return have + agreement +
             " (above 1.05): the chains disagree, perhaps on the weights of separate modes or along a strong "
             "correlation; use method = \"rejection\" with a larger budget, or ask for more draws" +
             warnings(draws);
    case SamplingStatus::no_support:
      return have +
             ": the ratio was zero or not finite at all prior draws; check the observation against the "
             "simulations";
    case SamplingStatus::stopped:
      return have + "; stopped on request" + warnings(draws);
    case SamplingStatus::weights_unreliable:  // not of chains
    case SamplingStatus::budget_spent:
      break;
  }
  if (seconds_left < 0)
    return have + "; the budget is spent before the first iteration of the warm-up: raise it";
  return have + "; the budget is spent; the rest would take about " + digits("%.3g", seconds_left) +
         " s more" + warnings(draws);
}

}  // namespace nrec
