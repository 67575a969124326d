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
  EXPECT_LT(found.p_value, 1e-4);  // far beyond the farthest of 500
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

TEST(ObservationDistance, TailOfManySimulationsIsHeldByFewOfThem) {
  // Distances of heavy-tailed x: of 2,000 draws beyond all 200 simulations, p-values below 1e-3 are rare.
  ThreadPool pool(2);
  int far = 0;
  for (std::uint64_t row = 0; row < 20; ++row) {
    RandomStream random(9, Stream::check, row);
    Matrix<double> x(300, 1);
    for (double& value : x.values()) value = random.normal() / std::sqrt(random.uniform(1e-3, 1.0));
    const ObservationDistances distances(x.view().middle_rows(0, 200), pool);
    for (std::size_t i = 200; i < 300; ++i) far += distances.at(std::as_const(x).row(i)).p_value < 1e-3;
  }
  EXPECT_LE(far, 10);  // 2 if the tail were exactly right
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
    EXPECT_STREQ(error.what(), "observation_distance: x is [5, 2]; at least 10 rows are needed");
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
  EXPECT_DOUBLE_EQ(found.tail[1], 1.0);                 // half of the counts are as large
  EXPECT_DOUBLE_EQ(found.column_p_value, 4.0 / 101.0);  // as far out are 98.5 itself, 99, 0 and 1
  EXPECT_DOUBLE_EQ(found.p_value, 8.0 / 101.0);         // the smaller of two, doubled
  EXPECT_EQ(found.worst_column, 0u);
  EXPECT_THROW(predictive_check(std::vector<double>{1.0}, predicted), ShapeError);
}

TEST(PredictiveCheck, HasPowerWhateverTheNumberOfColumns) {
  // 200 columns: 1 of 1,001 where Bonferroni's 200 * 2 / 1001 could refuse nothing.
  Matrix<double> predicted(1000, 200);
  RandomStream random(6, Stream::check, 1);
  for (std::size_t i = 0; i < predicted.rows(); ++i) {
    for (std::size_t j = 0; j < predicted.cols(); ++j) predicted(i, j) = random.normal();
  }
  std::vector<double> x_o(200, 0.0);
  EXPECT_GT(predictive_check(x_o, predicted).p_value, 0.99);
  x_o[17] = 8.0;
  const PredictiveCheck found = predictive_check(x_o, predicted);
  EXPECT_EQ(found.worst_column, 17u);
  EXPECT_LT(found.p_value, 1.0 / 1001.0);
  EXPECT_GT(found.p_value,
            1e-8);  // normal tails are lighter than Pareto's: 1e-13 would be right for one of 200 at 8 sds
}

TEST(PredictiveCheck, AValueThatWasNeverSimulatedIsNotImpossible) {
  // All simulations are 0: 1 is as far out as can be, but 200 of them do not say more than 1 in 201.
  const Matrix<double> predicted(200, 1);
  EXPECT_DOUBLE_EQ(predictive_check(std::vector<double>{1.0}, predicted).p_value, 1.0 / 201.0);
  EXPECT_DOUBLE_EQ(predictive_check(std::vector<double>{0.0}, predicted).p_value, 1.0);
}

TEST(PredictiveCheck, SeesCombinationsThatAreNotSimulated) {
  // Eight columns that move together, noise of a tenth: every number of x_o is common, their differences are not.
  Matrix<double> predicted(200, 8);
  RandomStream random(9, Stream::check, 1);
  for (std::size_t i = 0; i < predicted.rows(); ++i) {
    const double common = random.normal();
    for (std::size_t j = 0; j < 8; ++j) predicted(i, j) = common + 0.1 * random.normal();
  }
  std::vector<double> x_o(8, 0.5);
  const PredictiveCheck usual = predictive_check(x_o, predicted);
  EXPECT_GT(usual.p_value, 0.5);
  for (std::size_t j = 0; j < 8; j += 2) x_o[j] = -0.5;
  const PredictiveCheck found = predictive_check(x_o, predicted);
  EXPECT_GT(found.column_p_value, 0.5);
  EXPECT_LT(found.joint_p_value, 1e-4);
  EXPECT_LT(found.p_value, 2e-4);
  EXPECT_GT(found.joint_distance, 3.0 * found.joint_median);
}

TEST(PredictiveCheck, JointTestTakesMoreColumnsThanRowsAndColumnsWithoutSpread) {
  Matrix<double> predicted(60, 700);
  RandomStream random(9, Stream::check, 2);
  for (std::size_t i = 0; i < predicted.rows(); ++i) {
    for (std::size_t j = 1; j < predicted.cols(); ++j) predicted(i, j) = std::exp(3.0 * random.normal());
  }
  for (const std::size_t columns : {2u, 61u, 300u, 700u}) {
    Matrix<double> part(60, columns);
    for (std::size_t i = 0; i < 60; ++i) std::copy_n(predicted.row(i).begin(), columns, part.row(i).begin());
    std::vector<double> x_o(columns, 1.0);
    x_o[0] = 0.0;  // as all simulated ones
    EXPECT_GT(predictive_check(x_o, part).p_value, 0.02) << columns;
    x_o[0] = 1.0;  // never simulated: all that 60 rows can say, twice
    EXPECT_NEAR(predictive_check(x_o, part).p_value, 2.0 / 61.0, 1e-12) << columns;
  }
}

TEST(PredictiveCheck, PValuesOfPredictedDataAreUniform) {
  int below = 0;  // of 1,000 at 0.1: standard deviation 9.5
  for (std::uint64_t row = 0; row < 1000; ++row) {
    RandomStream random(7, Stream::check, row);
    Matrix<double> points(61, 3);
    for (std::size_t i = 0; i < points.rows(); ++i) {
      points(i, 0) = random.normal();
      points(i, 1) = points(i, 0) + 0.1 * random.normal();
      points(i, 2) = random.normal();
    }
    below += predictive_check(points.row(60), points.view().middle_rows(0, 60)).p_value <= 0.1;
  }
  EXPECT_NEAR(below, 100, 40);
}

}  // namespace
}  // namespace nrec
