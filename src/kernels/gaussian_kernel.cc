#include "kernels/gaussian_kernel.h"

#include <cmath>

#include "nrec/kernels/dispatch.h"

namespace nrec {

namespace ref {

double gaussian_kernel_sum(const double* row, const PointColumns& points, double factor) {
  double sum = 0.0;
  for (std::size_t j = 0; j < points.count; ++j) {
    double distance = 0.0;
    for (std::size_t k = 0; k < points.dims; ++k) {
      const double difference = row[k] - points.start[k * points.stride + j];
      distance += difference * difference;
    }
    sum += std::exp(-factor * distance);
  }
  return sum;
}

}  // namespace ref

double gaussian_kernel_sum(const double* row, const PointColumns& points, double factor) {
#if defined(NREC_VECTOR_EXP)
  static const bool has_avx2 = isa_status("avx2").available;
  if (has_avx2) return avx2::gaussian_kernel_sum(row, points, factor);
#endif
  return ref::gaussian_kernel_sum(row, points, factor);
}

}  // namespace nrec
