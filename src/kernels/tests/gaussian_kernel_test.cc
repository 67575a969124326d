#include "kernels/gaussian_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "nrec/core/random.h"

namespace nrec {
namespace {

TEST(GaussianKernel, IsTheSumOfExponentials) {
  RandomStream random(3, Stream::check);
  for (const std::size_t dims : {1u, 2u, 10u}) {
    for (const std::size_t count : {0u, 1u, 3u, 511u, 513u, 2000u}) {
      std::vector<double> row(dims), columns(dims * (count + 3));
      for (double& value : row) value = random.normal();
      for (double& value : columns) value = random.normal();
      const double factor = 0.37;
      long double exact = 0.0L;
      for (std::size_t j = 0; j < count; ++j) {
        long double distance = 0.0L;
        for (std::size_t k = 0; k < dims; ++k)
          distance += std::pow(static_cast<long double>(row[k]) - columns[k * (count + 3) + j], 2.0L);
        exact += std::exp(-factor * distance);
      }
      // n u for the sum, and some units for the exponents (up to 30 here, whose errors the exponential multiplies) and exponentials.
      const double bound = (static_cast<double>(count) + 40.0 * static_cast<double>(dims + 2)) *
                           std::numeric_limits<double>::epsilon() / 2.0 * static_cast<double>(exact);
      for (const auto& sum : {gaussian_kernel_sum, ref::gaussian_kernel_sum}) {
        EXPECT_NEAR(sum(row.data(), {columns.data(), count + 3, count, dims}, factor),
                    static_cast<double>(exact), bound)
            << dims << " " << count;
      }
    }
  }
}

TEST(GaussianKernel, IsZeroBetweenDistantPoints) {
  const double row[] = {0.0};
  const std::vector<double> columns = {1e150, -1e150, 0.0, 40.0, 39.0, 1e3, -40.0, 50.0, 60.0};
  const double exact = 1.0;  // exp(-39^2) is 0 in double
  for (const auto& sum : {gaussian_kernel_sum, ref::gaussian_kernel_sum})
    EXPECT_EQ(sum(row, {columns.data(), columns.size(), columns.size(), 1}, 1.0), exact);
}

}  // namespace
}  // namespace nrec
