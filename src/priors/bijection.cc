#include "priors/bijection.h"

#include <algorithm>
#include <cmath>

#include "priors/distribution.h"

namespace nrec {

namespace {

// Size of u on a bound. log of the smallest positive double is -744.4, so that every theta strictly inside an
// interval of ordinary width has a smaller |u|, and exp(-750) is 0: a bound maps back to itself.
constexpr double kBoundCoordinate = 750.0;
// Above this u, exp(u) is beyond the largest double: theta stays there and no longer moves with u.
const double kLogLargest = std::log(kLargest);

// log of a distance to a bound; what lies on or behind the bound counts as the bound. nan stays nan.
double log_distance(double distance) {
  return distance <= 0.0 ? -kBoundCoordinate : std::min(std::log(distance), kBoundCoordinate);
}

double interval_to_unbounded(double low, double high, double theta) {
  if (theta <= low) return -kBoundCoordinate;
  if (theta >= high) return kBoundCoordinate;
  const double below = theta - low;
  const double above = high - theta;
  const double ratio = below / above;
  // The quotient keeps full precision around the middle; two logarithms reach where it would over- or
  // underflow.
  const bool ordinary = ratio > 1e-300 && ratio < 1e300;
  const double u = ordinary ? std::log(ratio) : std::log(below) - std::log(above);
  return std::isnan(theta) ? theta : std::clamp(u, -kBoundCoordinate, kBoundCoordinate);
}

double interval_to_constrained(double low, double high, double u) {
  // Measured from the nearer bound, so that neither end loses its digits.
  const double e = std::exp(-std::fabs(u));
  const double step = (high - low) * (e / (1.0 + e));
  const double theta = u < 0.0 ? low + step : high - step;
  return std::isnan(u) ? u : std::clamp(theta, low, high);
}

}  // namespace

Bijection Bijection::of_support(double low, double high) {
  const bool has_low = std::isfinite(low);
  const bool has_high = std::isfinite(high);
  if (has_low && has_high) return {Kind::interval, low, high, std::log(high - low)};
  if (has_low) return {Kind::above, low, high};
  if (has_high) return {Kind::below, low, high};
  return {};
}

double Bijection::to_unbounded(double theta) const {
  switch (kind) {
    case Kind::interval:
      return interval_to_unbounded(low, high, theta);
    case Kind::above:
      return log_distance(theta - low);
    case Kind::below:
      return log_distance(high - theta);
    case Kind::identity:
      break;
  }
  return theta;
}

double Bijection::to_constrained(double u) const {
  switch (kind) {
    case Kind::interval:
      return interval_to_constrained(low, high, u);
    case Kind::above:
      return std::isnan(u) ? u : std::min(low + std::exp(u), kLargest);
    case Kind::below:
      return std::isnan(u) ? u : std::max(high - std::exp(u), -kLargest);
    case Kind::identity:
      break;
  }
  return u;
}

double Bijection::log_jacobian(double u) const {
  switch (kind) {
    case Kind::interval: {
      // log width + log sigmoid(u) + log sigmoid(-u)
      const double size = std::fabs(u);
      return log_width - size - 2.0 * std::log1p(std::exp(-size));
    }
    case Kind::above:
    case Kind::below:
      return u > kLogLargest ? -kInfinity : u;
    case Kind::identity:
      break;
  }
  return 0.0;
}

double Bijection::slope(double u) const {
  switch (kind) {
    case Kind::interval: {
      const double e = std::exp(-std::fabs(u));
      return (high - low) * (e / ((1.0 + e) * (1.0 + e)));
    }
    case Kind::above:
      return u > kLogLargest ? 0.0 : std::exp(u);
    case Kind::below:
      return u > kLogLargest ? 0.0 : -std::exp(u);
    case Kind::identity:
      break;
  }
  return 1.0;
}

double Bijection::log_jacobian_slope(double u) const {
  switch (kind) {
    case Kind::interval:
      return -std::tanh(0.5 * u);
    case Kind::above:
    case Kind::below:
      return u > kLogLargest ? 0.0 : 1.0;
    case Kind::identity:
      break;
  }
  return 0.0;
}

}  // namespace nrec
