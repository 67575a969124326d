#include "nrec/diagnostics/weighted_auc.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nrec/core/error.h"
#include "nrec/core/random.h"
#include "nrec/diagnostics/classifier_check.h"

namespace nrec {
namespace {

using List = std::vector<double>;

TEST(WeightedAuc, CountsWonPairsByWeight) {
  const List equal = {1, 1};
  EXPECT_DOUBLE_EQ(weighted_auc(List{3, 4}, List{1, 2}, equal, equal).auc, 1.0);
  EXPECT_DOUBLE_EQ(weighted_auc(List{1, 2}, List{3, 4}, equal, equal).auc, 0.0);
  EXPECT_DOUBLE_EQ(weighted_auc(List{1, 3}, List{1, 2}, equal, equal).auc, 0.625);  // 0.5 + 0 + 1 + 1 of 4
  EXPECT_DOUBLE_EQ(weighted_auc(List{1, 3}, List{1, 2}, equal, List{3, 1}).auc,
                   0.6875);  // (0.5 * 3 + 3 + 1) / 8
  EXPECT_DOUBLE_EQ(weighted_auc(List{1, 3}, List{1, 2}, List{3, 1}, equal).auc, 0.4375);
}

/// Scores of ones N(shift, 1) and of zeros N(0, 1) that share half of their variance row by row.
struct Scores {
  List ones, zeros, weights;
  Scores(std::uint64_t row, double shift, std::size_t n = 200) {
    RandomStream random(2, Stream::check, row);
    for (std::size_t i = 0; i < n; ++i) {
      const double common = random.normal();
      ones.push_back(shift + std::sqrt(0.5) * (common + random.normal()));
      zeros.push_back(std::sqrt(0.5) * (common + random.normal()));
      weights.push_back(std::exp(random.normal()));
    }
  }
};

TEST(WeightedAuc, HasTheErrorThatItStates) {
  // Over 1,000 sets: mean at Phi(0.5 / sqrt 2), and the spread of (auc - mean) / se near 1 (standard error 0.022).
  const double truth = 0.5 * std::erfc(-0.25);
  double sum = 0.0, square = 0.0;
  for (std::uint64_t row = 0; row < 1000; ++row) {
    const Scores scores(row, 0.5);
    const WeightedAuc auc = weighted_auc(scores.ones, scores.zeros, List(200, 1.0), scores.weights);
    const double z = (auc.auc - truth) / auc.standard_error;
    sum += z / 1000.0;
    square += z * z / 1000.0;
  }
  EXPECT_NEAR(sum, 0.0, 4 * 0.032);
  EXPECT_NEAR(std::sqrt(square), 1.0, 0.1);
}

TEST(WeightedAuc, CurveHasTheAreaBelowIt) {
  const Scores scores(7, 1.0, 4000);
  const WeightedAuc auc = weighted_auc(scores.ones, scores.zeros, List(4000, 1.0), scores.weights);
  ASSERT_EQ(auc.true_positive.size(), 101u);
  double area = 0.0;
  for (std::size_t k = 1; k <= 100; ++k) area += 0.005 * (auc.true_positive[k - 1] + auc.true_positive[k]);
  EXPECT_NEAR(area, auc.auc, 0.005);
  EXPECT_DOUBLE_EQ(auc.true_positive.back(), 1.0);
}

TEST(WeightedAuc, RefusesWhatHasNoArea) {
  const List two = {1, 2}, equal = {1, 1};
  EXPECT_THROW(weighted_auc(two, List{1}, equal, equal), ShapeError);
  EXPECT_THROW(weighted_auc(two, List{1, std::nan("")}, equal, equal), DomainError);
  EXPECT_THROW(weighted_auc(two, two, equal, List{0, 0}), DomainError);
  try {
    weighted_auc(two, two, equal, List{1, -2});
    FAIL() << "no error";
  } catch (const DomainError& error) {
    EXPECT_STREQ(error.what(), "weighted_auc: zero_weights[1] = -2 must be finite and not negative");
  }
}

/// Rows N(shift, 1) in the first of two columns.
Matrix<double> normals(std::size_t n, double shift, std::uint64_t row) {
  RandomStream random(6, Stream::check, row);
  Matrix<double> values(n, 2);
  for (std::size_t i = 0; i < n; ++i) {
    values(i, 0) = shift + random.normal();
    values(i, 1) = random.normal();
  }
  return values;
}

TEST(ClassifierCheck, FindsTheBestAreaOfAShift) {
  ThreadPool pool(2);
  const WeightedAuc auc =
      classifier_check(normals(2000, 1.0, 1), normals(2000, 0.0, 2), List(2000, 1.0), 1, pool);
  EXPECT_NEAR(auc.auc, 0.5 * std::erfc(-0.5), 0.03);  // Phi(1 / sqrt 2)
  EXPECT_LT(auc.p_value, 1e-10);
}

TEST(ClassifierCheck, IsBlindToWhatTheWeightsUndoAndOnlyToThat) {
  ThreadPool pool(2);
  const Matrix<double> ones = normals(2000, 0.7, 3), zeros = normals(2000, 0.0, 4);
  List right, flipped;
  for (std::size_t i = 0; i < zeros.rows(); ++i) {
    right.push_back(std::exp(0.7 * zeros(i, 0) - 0.245));
    flipped.push_back(std::exp(-0.7 * zeros(i, 0) - 0.245));
  }
  const WeightedAuc exact = classifier_check(ones, zeros, right, 1, pool);
  EXPECT_LT(std::fabs(exact.auc - 0.5), 4 * exact.standard_error);
  EXPECT_GT(classifier_check(ones, zeros, List(2000, 1.0), 1, pool).auc, 0.65);
  EXPECT_GT(classifier_check(ones, zeros, flipped, 1, pool).auc, 0.75);
}

TEST(ClassifierCheck, FalseAlarmsComeAtTheStatedRate) {
  ThreadPool pool(2);
  int alarms = 0;  // of 60 at 0.1: expected 6, standard deviation 2.3
  for (std::uint64_t row = 0; row < 60; ++row) {
    const Matrix<double> ones = normals(150, 0.0, 100 + 2 * row), zeros = normals(150, 0.0, 101 + 2 * row);
    alarms += classifier_check(ones, zeros, List(150, 1.0), row, pool).p_value < 0.1;
  }
  EXPECT_LE(alarms, 14);
}

TEST(ClassifierCheck, GivesTheSameBitsOnAnyNumberOfThreads) {
  ThreadPool one(1), three(3);
  const Matrix<double> ones = normals(100, 0.3, 5), zeros = normals(100, 0.0, 6);
  const List equal(100, 1.0);
  EXPECT_EQ(classifier_check(ones, zeros, equal, 1, one).auc,
            classifier_check(ones, zeros, equal, 1, three).auc);
}

TEST(ClassifierCheck, RefusesWhatItCannotUse) {
  ThreadPool pool(1);
  const Matrix<double> few = normals(20, 0, 1), some = normals(60, 0, 1);
  EXPECT_THROW(classifier_check(few, few, List(20, 1.0), 1, pool), ShapeError);
  EXPECT_THROW(classifier_check(some, few, List(60, 1.0), 1, pool), ShapeError);
  Matrix<double> bad = some;
  bad(3, 1) = std::nan("");
  try {
    classifier_check(bad, some, List(60, 1.0), 1, pool);
    FAIL() << "no error";
  } catch (const DomainError& error) {
    EXPECT_STREQ(error.what(), "classifier_check: a feature is nan, row 3, column 1");
  }
}

}  // namespace
}  // namespace nrec
