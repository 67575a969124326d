#pragma once

#include <cmath>
#include <limits>

namespace nrec {

/// Sums for mean and standard deviation of a stream of numbers (Welford).
struct RunningMoments {
  double n = 0, mean = 0, m2 = 0;
  void add(double value) {
    n += 1;
    const double delta = value - mean;
    mean += delta / n;
    m2 += delta * (value - mean);
  }
  double sd() const { return n > 1 ? std::sqrt(m2 / (n - 1)) : std::numeric_limits<double>::quiet_NaN(); }
};

}  // namespace nrec
