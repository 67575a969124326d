#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "nrec/core/array.h"

namespace nrec {

/// Per-column shift and scale: z = (value - shift) / scale, computed in float64 before the cast to float32.
struct Standardiser {
  std::vector<double> shift;
  std::vector<double> scale;

  std::size_t dim() const { return shift.size(); }
  /// Shapes   values [n, dim] in; out [n, dim] out.  Errors ShapeError
  void apply(MatrixView<const double> values, MatrixView<float> out) const;
  bool operator==(const Standardiser&) const = default;
};

/// What fitting found, for warnings.
struct StandardiserReport {
  std::vector<std::size_t> constant_columns;      // centred, scale 1 (or tiny)
  std::vector<std::size_t> heavy_tailed_columns;  // sd more than 10 times what the quartiles suggest
};

/// How columns are shifted and scaled before they meet a network.
enum class StandardiserMethod {
  independent,  // mean and sd (n - 1) per column
  robust,  // median and interquartile range / 1.349; columns whose quartiles agree fall back to mean and sd
  none,    // shift 0, scale 1
};
/// "independent", "robust", "none". Errors: ConfigError.
StandardiserMethod standardiser_method(std::string_view name);

/// What a column that does not vary is divided by.
enum class ConstantColumns {
  unit_scale,  // 1
  tiny_scale,  // max(sd, kTinyScale), for every column, as the published experiments did it
};
inline constexpr double kTinyScale = 1e-7;

/// Statistics of all rows in float64, computed about the first row so that large offsets lose nothing.
/// A column whose values are equal, or differ only by rounding (sd below 8 ulp of its size), is constant. With
/// ConstantColumns::tiny_scale this is reported but changes no scale.
///
/// Shapes   values [n, dim] in, n >= 1, finite
Standardiser fit_standardiser(MatrixView<const double> values, StandardiserMethod method,
                              StandardiserReport& report,
                              ConstantColumns constants = ConstantColumns::unit_scale);

}  // namespace nrec
