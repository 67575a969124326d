#include "inference/nuts_report.h"

#include <cstdio>
#include <numeric>

namespace nrec {

namespace {

/// Trajectories that end at the largest tree are cut short; a few do no harm.
constexpr double kManyLongTrees = 0.01;

std::string digits(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

double total(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

std::int64_t count_of(const PosteriorDraws& draws, const char* name) {
  const RecordValue* value = draws.statistics.find(name);
  return value ? std::get<std::int64_t>(*value) : 0;
}

std::string warnings(const PosteriorDraws& draws) {
  std::string text;
  const std::int64_t divergences = count_of(draws, "divergences");
  if (divergences > 0) {
    text += "; " + std::to_string(divergences) +
            " draws ended in a divergence: somewhere the posterior bends more sharply than the step size can "
            "follow, and "
            "that region may be missing; compare with method = \"slice\"";
  }
  const std::int64_t longest = count_of(draws, "reached_max_treedepth");
  if (static_cast<double>(longest) > kManyLongTrees * static_cast<double>(draws.size())) {
    text += "; " + std::to_string(longest) + " draws took the most steps that are allowed (" +
            std::to_string((1 << NutsTree::kMaxDepth) - 1) +
            "): the posterior is much longer than it is wide, look at the effective sample sizes";
  }
  return text;
}

}  // namespace

void add_transitions(const KeptTransitions& kept, PosteriorDraws& draws) {
  if (draws.size() == 0) return;
  std::vector<double> acceptance, depth, steps, energy, diverging;
  for (const std::vector<TransitionStatistics>& chain : kept) {
    for (const TransitionStatistics& t : chain) {
      if (steps.size() == draws.size()) break;
      acceptance.push_back(t.acceptance_rate);
      depth.push_back(t.tree_depth);
      steps.push_back(t.n_steps);
      energy.push_back(t.energy);
      diverging.push_back(t.diverging ? 1.0 : 0.0);
    }
  }
  const double n = static_cast<double>(draws.size());
  std::int64_t longest = 0;
  for (const double d : depth) longest += d == NutsTree::kMaxDepth;
  draws.statistics.set("acceptance_rate", total(acceptance) / n);
  draws.statistics.set("tree_depth", total(depth) / n);
  draws.statistics.set("n_steps", total(steps) / n);
  draws.statistics.set("energy", total(energy) / n);
  draws.statistics.set("divergences", RecordValue(static_cast<std::int64_t>(total(diverging))));
  draws.statistics.set("reached_max_treedepth", RecordValue(longest));
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
             " (above 1.05): the chains disagree, perhaps on the weights of separate modes; use method = "
             "\"rejection\" with a larger budget" +
             warnings(draws);
    case SamplingStatus::no_support:
      return have +
             ": the ratio was zero or not finite at all prior draws; check the observation against the "
             "simulations";
    case SamplingStatus::stopped:
      return have + "; stopped on request" + warnings(draws);
    case SamplingStatus::budget_spent:
      break;
  }
  if (seconds_left < 0)
    return have + "; the budget is spent before the first iteration of the warm-up: raise it";
  return have + "; the budget is spent; the rest would take about " + digits("%.3g", seconds_left) +
         " s more" + warnings(draws);
}

}  // namespace nrec
