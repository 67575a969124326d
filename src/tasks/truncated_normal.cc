#include "truncated_normal.h"

#include <cmath>
#include <numbers>

namespace nrec::tasks {
namespace {

// Standard normal restricted to [a, b] with 0 < a < b.
double draw_tail(double a, double b, RandomStream& random) {
  const double rate = 0.5 * (a + std::sqrt(a * a + 4.0));
  for (;;) {
    const double z = a - std::log(random.uniform()) / rate;
    if (z <= b && random.uniform() <= std::exp(-0.5 * (z - rate) * (z - rate))) return z;
  }
}

double upper_tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

}  // namespace

double draw_truncated_normal(double mean, double sd, double low, double high, RandomStream& random) {
  const double a = (low - mean) / sd;
  const double b = (high - mean) / sd;
  if (a > 0.0) return mean + sd * draw_tail(a, b, random);
  if (b < 0.0) return mean - sd * draw_tail(-b, -a, random);
  for (;;) {
    const double z = random.normal();
    if (z >= a && z <= b) return mean + sd * z;
  }
}

double normal_interval_probability(double mean, double sd, double low, double high) {
  const double a = (low - mean) / sd;
  const double b = (high - mean) / sd;
  if (a > 0.0) return upper_tail(a) - upper_tail(b);
  if (b < 0.0) return upper_tail(-b) - upper_tail(-a);
  return 1.0 - upper_tail(-a) - upper_tail(b);
}

}  // namespace nrec::tasks
