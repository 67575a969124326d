#include "nrec/diagnostics/predictive_distance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "nrec/core/error.h"

namespace nrec {
namespace {

// x = theta + noise; a negative theta fails.
FunctionSimulator noisy(double noise) {
  return FunctionSimulator("noisy", 2, 2,
                           [noise](std::span<const double> theta, RandomStream& random, std::span<double> x) {
                             for (std::size_t d = 0; d < 2; ++d) x[d] = theta[d] + noise * random.normal();
                             if (theta[0] < 0.0) x[0] = std::nan("");
                           });
}

TEST(MedianDistance, IsTheMiddleOne) {
  const std::vector<double> x_o = {0.0, 0.0};
  EXPECT_EQ(median_distance(Matrix<double>(3, 2, {3, 4, 0, 1, 0, 100}), x_o), 5.0);
  EXPECT_EQ(median_distance(Matrix<double>(4, 2, {3, 4, 0, 1, 0, 100, 6, 8}), x_o), 7.5)
      << "mean of 5 and 10";
  EXPECT_EQ(median_distance(Matrix<double>(3, 2, {3, 4, std::nan(""), 1, 0, 1}), x_o), 5.0)
      << "what is no number is infinitely far";
}

TEST(MedianPredictiveDistance, OfNormalNoiseIsARayleighMedian) {
  constexpr std::size_t kRows = 20000;
  constexpr double kNoise = 0.5;
  Matrix<double> theta(kRows, 2);
  for (double& value : theta.values()) value = 1.0;
  const std::vector<double> x_o = {1.0, 1.0};
  const double expected = kNoise * std::sqrt(2.0 * std::log(2.0));
  // Standard error of a median: 1 / (2 f sqrt n), with the density f = m / (2 s^2) there.
  const double error = kNoise * kNoise / (expected * std::sqrt(static_cast<double>(kRows)));
  ThreadPool one(1), three(3);
  const PredictiveDistance found = median_predictive_distance(noisy(kNoise), theta, x_o, 5, one);
  EXPECT_NEAR(found.median, expected, 4 * error);
  EXPECT_GT(std::fabs(found.median - 1.03 * expected), 4 * error) << "control";
  EXPECT_EQ(found.num_failed, 0u);
  EXPECT_EQ(median_predictive_distance(noisy(kNoise), theta, x_o, 5, three).median, found.median);
}

TEST(MedianPredictiveDistance, CountsFailuresAsInfinitelyFar) {
  ThreadPool pool(2);
  const std::vector<double> x_o = {0.0, 0.0};
  const PredictiveDistance one_of_three =
      median_predictive_distance(noisy(0.0), Matrix<double>(3, 2, {3, 4, -1, 0, 0, 1}), x_o, 1, pool);
  EXPECT_EQ(one_of_three.num_failed, 1u);
  EXPECT_EQ(one_of_three.median, 5.0);
  EXPECT_TRUE(std::isinf(
      median_predictive_distance(noisy(0.0), Matrix<double>(2, 2, {-3, 4, -1, 0}), x_o, 1, pool).median));
}

TEST(MedianPredictiveDistance, RefusesOtherLengths) {
  ThreadPool pool(1);
  try {
    median_predictive_distance(noisy(0.0), Matrix<double>(3, 2), std::vector<double>(3), 1, pool);
    FAIL() << "accepted";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(
        error.what(),
        "median_distance: x is [3, 2] but x_o has 3 numbers; give at least one row of as many columns");
  }
}

}  // namespace
}  // namespace nrec
