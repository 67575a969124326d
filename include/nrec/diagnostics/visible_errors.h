#pragma once

#include <cstddef>

namespace nrec {

/// The smallest errors of a posterior that tests of n ranks would see in nine of ten cases.
struct VisibleErrors {
  double shift = 0.0;   // distance of the mean, in posterior sds; infinite if no shift would be seen
  double narrow = 0.0;  // sd over the right one, in [0, 1): this one and narrower ones would be seen
};

/// Smallest visible errors, for normal posteriors.
///
///   shift d:   mean rank Phi(d / sqrt 2), standard error 1/sqrt(12 n)
///   width 1/k: mean of (u - 1/2)^2 is asin(k^2/(1 + k^2))/(2 pi), standard error 1/sqrt(180 n)
///   seen in nine of ten cases: away from the uniform value by (z(1 - level/2) + z(0.9)) standard errors
///
/// Units    level: of each single test, in (0, 1); chance_share: share of chance in the ranks (HeldOutRatios::mean_own_share), in
///          [0, 1], by which both effects shrink
/// Errors   DomainError: level or chance_share
VisibleErrors visible_errors(std::size_t n, double level, double chance_share);

}  // namespace nrec
