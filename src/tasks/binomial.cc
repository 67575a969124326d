#include "binomial.h"

#include <array>
#include <cmath>

#include "nrec/core/error.h"

namespace nrec::tasks {

int draw_binomial(int trials, double probability, RandomStream& random) {
  require_internal(trials >= 0 && trials <= kMostTrials && probability >= 0.0 && probability <= 1.0,
                   "draw_binomial called outside its range");
  const bool flipped = probability > 0.5;
  const double p = flipped ? 1.0 - probability : probability;
  const double odds = p / (1.0 - p);
  double term = std::exp(static_cast<double>(trials) * std::log1p(-p));
  double rest = random.uniform();
  int successes = 0;
  while (rest > term && successes < trials) {
    rest -= term;
    term *= odds * static_cast<double>(trials - successes) / static_cast<double>(successes + 1);
    ++successes;
  }
  return flipped ? trials - successes : successes;
}

double log_binomial_coefficient(int trials, int successes) {
  static const auto log_factorial = [] {
    std::array<double, kMostTrials + 1> table{};
    long double sum = 0.0L;
    for (int k = 1; k <= kMostTrials; ++k) {
      sum += std::log(static_cast<long double>(k));
      table[static_cast<std::size_t>(k)] = static_cast<double>(sum);
    }
    return table;
  }();
  require_internal(successes >= 0 && successes <= trials && trials <= kMostTrials,
                   "log_binomial_coefficient called outside its range");
  const auto at = [&](int k) { return log_factorial[static_cast<std::size_t>(k)]; };
  return at(trials) - at(successes) - at(trials - successes);
}

}  // namespace nrec::tasks
