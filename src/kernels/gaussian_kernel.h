#pragma once

#include <cstddef>

namespace nrec {

/// Points by columns: coordinate k of point j is start[k * stride + j].
struct PointColumns {
  const double* start;
  std::size_t stride, count, dims;
};

/// Sum over the points p of exp(-factor |row - p|^2).
///
/// Shapes   row [points.dims]
/// Numerics exponentials within 4 units in the last place where the C library has vector functions; the order of the sum
///          depends on the number of points only
double gaussian_kernel_sum(const double* row, const PointColumns& points, double factor);

namespace avx2 {
/// Needs AVX2 and FMA.
double gaussian_kernel_sum(const double* row, const PointColumns& points, double factor);
}  // namespace avx2

}  // namespace nrec
