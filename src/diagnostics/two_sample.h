#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/log_sink.h"

namespace nrec::two_sample {

/// Throws unless both sets have the same columns, at least `min_rows` rows and finite values; `where` starts
/// the text.
void check(std::string_view where, MatrixView<const double> reference, MatrixView<const double> samples,
           std::size_t min_rows, std::string_view min_rows_reason);

/// Per-column (x - shift) / scale.
struct Scaling {
  std::vector<double> shift;
  std::vector<double> scale;
  double apply(double value, std::size_t column) const { return (value - shift[column]) / scale[column]; }
};

/// shift 0, scale 1.
Scaling identity_scaling(std::size_t cols);

/// Mean and sd (n - 1) of the reference. A column constant and equal in both sets gets scale 1 and its number
/// goes to `uninformative`; one constant in the reference alone throws DomainError.
Scaling reference_scaling(std::string_view where, MatrixView<const double> reference,
                          MatrixView<const double> samples, std::vector<std::size_t>* uninformative);

}  // namespace nrec::two_sample
