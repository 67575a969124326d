#include "nrec/diagnostics/observation_checks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nrec/core/error.h"
#include "nrec/core/random.h"

namespace nrec {
namespace {

/// Rows on a ring of radius 1, in units that differ by 1,000 between the columns.
Matrix<double> ring(std::size_t n, std::uint64_t row) {
  RandomStream random(3, Stream::check, row);
  Matrix<double> x(n, 2);
  for (std::size_t i = 0; i < n; ++i) {
    const double angle = random.uniform(0.0, 6.283185307179586), radius = 1.0 + 0.05 * random.normal();
    x(i, 0) = radius * std::cos(angle);
    x(i, 1) = 1000.0 * radius * std::sin(angle);
  }
  return x;
}

TEST(ObservationDistance, SeesAHoleThatRangesDoNotShow) {
  ThreadPool pool(2);
  const std::vector<double> centre = {0.0, 0.0};
  const ObservationDistance found = observation_distance(centre, ring(500, 1), pool);
  EXPECT_EQ(found.num_rows, 500u);
  EXPECT_EQ(found.num_neighbours, 5u);
  EXPECT_DOUBLE_EQ(found.p_value, 1.0 / 501.0);
  EXPECT_GT(found.distance, 5.0 * found.median_distance);
}

TEST(ObservationDistance, PValuesOfSimulationsAreUniform) {
  ThreadPool pool(2);
  int below = 0;  // of 400 at 0.1: standard deviation 6
  for (std::uint64_t row = 0; row < 400; ++row) {
    const Matrix<double> x = ring(61, 10 + row);
    below += observation_distance(x.row(60), x.view().middle_rows(0, 60), pool).p_value <= 0.1;
  }
  EXPECT_NEAR(below, 40, 24);
}

TEST(ObservationDistance, DoesNotFeelUnits) {
  ThreadPool pool(1);
  Matrix<double> x = ring(100, 2);
  const std::vector<double> x_o = {0.2, -300.0};
  const ObservationDistance before = observation_distance(x_o, x, pool);
  for (std::size_t i = 0; i < x.rows(); ++i) x(i, 1) *= 1e-6;
  const std::vector<double> same = {0.2, -300.0e-6};
  EXPECT_NEAR(observation_distance(same, x, pool).distance, before.distance, 1e-4);
}

TEST(ObservationDistance, RefusesTooFewRowsAndOtherColumns) {
  ThreadPool pool(1);
  const std::vector<double> x_o = {0.0, 0.0}, three = {0.0, 0.0, 0.0};
  EXPECT_THROW(observation_distance(three, ring(100, 1), pool), ShapeError);
  try {
    observation_distance(x_o, ring(5, 1), pool);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(
        error.what(),
        "observation_distance: x_o has 2 numbers, x is [5, 2]; columns must be equal and rows at least 10");
  }
}

TEST(PredictiveCheck, CountsTailsWithTies) {
  // Column 0: 0 .. 99, x_o = 98.5; column 1: counts 0 and 1 in equal parts, x_o = 1.
  Matrix<double> predicted(100, 2);
  for (std::size_t i = 0; i < 100; ++i) {
    predicted(i, 0) = static_cast<double>(i);
    predicted(i, 1) = static_cast<double>(i % 2);
  }
  const std::vector<double> x_o = {98.5, 1.0};
  const PredictiveCheck found = predictive_check(x_o, predicted);
  EXPECT_DOUBLE_EQ(found.below[0], 0.99);
  EXPECT_DOUBLE_EQ(found.tail[0], 2.0 * 2.0 / 101.0);
  EXPECT_DOUBLE_EQ(found.below[1], 0.75);
  EXPECT_DOUBLE_EQ(found.tail[1], 1.0);  // half of the counts are as large
  EXPECT_DOUBLE_EQ(found.p_value, 2.0 * found.tail[0]);
  EXPECT_EQ(found.worst_column, 0u);
  EXPECT_THROW(predictive_check(std::vector<double>{1.0}, predicted), ShapeError);
}

}  // namespace
}  // namespace nrec
