#pragma once

#include <memory>

#include "priors/distribution.h"

namespace nrec {

/// Picks rows of `table` with equal chance; the table must outlive the distribution. add_log_prob throws
/// UnsupportedError. bounds(d) are the least and the largest number of column d.
std::unique_ptr<const Distribution> make_empirical(const Matrix<double>& table);

}  // namespace nrec
