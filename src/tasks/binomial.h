#pragma once

#include <cstddef>

#include "nrec/core/random.h"

namespace nrec::tasks {

// Largest number of trials: 2^-1000, the smallest first term of the search below, is still a normal double.
inline constexpr int kMostTrials = 1000;

// One exact draw from Binomial(trials, probability) by inversion: a single uniform is compared with the distribution
// function, summed term by term from the end of smaller probability. Relative error of the terms below 1e-12.
// Needs 0 <= trials <= kMostTrials and probability in [0, 1]. Cost: about trials * min(p, 1 - p) multiplications.
// Source: [Devroye1986, section III.2].
int draw_binomial(int trials, double probability, RandomStream& random);

// log C(trials, successes), summed logarithms, for 0 <= successes <= trials <= kMostTrials. Thread-safe.
double log_binomial_coefficient(int trials, int successes);

}  // namespace nrec::tasks
