#pragma once

#include "nrec/core/array.h"

namespace nrec {

/// Map between the support of one column and the real line.
///
///   interval   u = log((theta - low) / (high - theta))
///   above      u = log(theta - low)
///   below      u = log(high - theta)
///   identity   u = theta
struct Bijection {
  enum class Kind { identity, interval, above, below };
  Kind kind = Kind::identity;
  double low = 0.0;
  double high = 0.0;
  double log_width = 0.0;  // log(high - low) of an interval

  /// The bijection that fits [low, high], either of which may be infinite.
  static Bijection of_support(double low, double high);

  double to_unbounded(double theta) const;
  double to_constrained(double u) const;
  /// log |d theta / d u| at u: never nan or +infinity for a number u, and -infinity only where to_constrained
  /// stands still at the largest double (u > 709.78 of above and below). A heavy tail would otherwise look
  /// like mass at u = 1e4.
  double log_jacobian(double u) const;
  /// d theta / d u at u: negative for below, 0 where to_constrained stands still, nan at nan.
  double slope(double u) const;
  /// Derivative of log_jacobian with respect to u; 0 where that is -infinity.
  double log_jacobian_slope(double u) const;
};

}  // namespace nrec
