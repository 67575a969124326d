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
/// Numerics by avx2 where processor and C library have what it takes, otherwise by ref: sums of two machines may differ in their
///          last bits
double gaussian_kernel_sum(const double* row, const PointColumns& points, double factor);

namespace ref {
/// One point after the other.
double gaussian_kernel_sum(const double* row, const PointColumns& points, double factor);
}  // namespace ref

namespace avx2 {
/// Four points at a time, exponentials within 4 units in the last place. Needs AVX2, FMA and a C library with vector functions.
double gaussian_kernel_sum(const double* row, const PointColumns& points, double factor);
}  // namespace avx2

}  // namespace nrec
