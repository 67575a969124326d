#pragma once

#include "nrec/core/random.h"

namespace nrec::tasks {

// One exact draw from N(mean, sd^2) restricted to [low, high], wherever the interval lies.
//
// With the mean inside: draws of the normal until one falls in, at most two tries on average when the interval reaches
// one sd to a side (every box of this room does). With the mean outside: Robert's shifted exponential proposal.
// Source: [Robert1995].
double draw_truncated_normal(double mean, double sd, double low, double high, RandomStream& random);

// P(low <= N(mean, sd^2) <= high), accurate in relative terms also in the tails; 0 beyond about 38 sd.
double normal_interval_probability(double mean, double sd, double low, double high);

}  // namespace nrec::tasks
