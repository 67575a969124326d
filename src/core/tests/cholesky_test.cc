#include "core/cholesky.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace nrec {
namespace {

TEST(CholeskyFactor, GivesTheMatrixBack) {
  const Matrix<double> matrix(3, 3, {4, 0, 0, 2, 5, 0, -2, 1, 6});  // the upper triangle is not read
  const auto lower = cholesky_factor(matrix);
  ASSERT_TRUE(lower);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = 0.0;
      for (std::size_t k = 0; k < 3; ++k) sum += (*lower)(i, k) * (*lower)(j, k);
      EXPECT_NEAR(sum, matrix(i, j), 1e-14);
    }
  }
  // det of the symmetric matrix [[4, 2, -2], [2, 5, 1], [-2, 1, 6]].
  EXPECT_NEAR(2.0 * log_diagonal(*lower), std::log(64.0), 1e-14);
}

TEST(CholeskyFactor, IsNothingForWhatIsNotPositiveDefinite) {
  EXPECT_FALSE(cholesky_factor(Matrix<double>(2, 2, {1, 0, 2, 1})));
  EXPECT_FALSE(cholesky_factor(Matrix<double>(2, 2, {1, 0, 1, 1}))) << "singular";
  EXPECT_FALSE(cholesky_factor(Matrix<double>(1, 1, {std::nan("")})));
}

TEST(SolveLower, InvertsTheFactor) {
  const Matrix<double> lower(2, 2, {2, 0, 3, 4});
  std::vector<double> b = {2.0, 11.0};
  solve_lower(lower, b);
  EXPECT_EQ(b, (std::vector<double>{1.0, 2.0}));
}

}  // namespace
}  // namespace nrec
