#pragma once

#include <algorithm>
#include <cmath>

namespace nrec {

/// log(1 + exp(z)) without overflow.
inline double softplus(double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::fabs(z))); }

}  // namespace nrec
