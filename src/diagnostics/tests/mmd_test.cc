#include "nrec/diagnostics/mmd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "diagnostics/pairwise_median.h"
#include "nrec/core/error.h"
#include "nrec/core/random.h"
#include "reference_samples.h"

namespace nrec {
namespace {

Matrix<double> normal_rows(std::size_t rows, std::size_t cols, double mean, std::uint64_t key) {
  RandomStream random(321, Stream::check, key);
  Matrix<double> values(rows, cols);
  for (double& value : values.values()) value = mean + random.normal();
  return values;
}

double sorted_median(const Matrix<double>& points) {
  std::vector<double> distances;
  for (std::size_t i = 0; i < points.rows(); ++i) {
    for (std::size_t j = i + 1; j < points.rows(); ++j) {
      distances.push_back(std::sqrt(squared_distance(&points(i, 0), &points(j, 0), points.cols())));
    }
  }
  std::sort(distances.begin(), distances.end());
  return distances[(distances.size() - 1) / 2];
}

TEST(PairwiseMedian, IsTheLowerMiddleDistance) {
  ThreadPool pool(2);
  EXPECT_EQ(pairwise_median(Matrix<double>(2, 1, {1.0, 4.0}), pool), 3.0);
  EXPECT_EQ(pairwise_median(Matrix<double>(4, 1, {0.0, 1.0, 3.0, 7.0}), pool), 3.0);  // 1 2 3 4 6 7
  for (const std::size_t rows : {3u, 5u, 64u, 65u, 200u}) {
    const Matrix<double> points = normal_rows(rows, 3, 0.0, rows);
    EXPECT_EQ(pairwise_median(points, pool), sorted_median(points)) << rows;
  }
}

TEST(PairwiseMedian, NarrowsDownWhenPairsAreMany) {
  const Matrix<double> points =
      normal_rows(3000, 2, 0.0, 7);  // 4.5 million pairs: more than are collected at once
  ThreadPool pool(2);
  EXPECT_EQ(pairwise_median(points, pool), sorted_median(points));
}

TEST(PairwiseMedian, CopesWithMillionsOfEqualDistances) {
  Matrix<double> points(4200, 1);  // 4.41 million distances of 1, a few fewer of 0
  for (std::size_t i = 0; i < 2100; ++i) points(i, 0) = 1.0;
  ThreadPool pool(2);
  EXPECT_EQ(pairwise_median(points, pool), 1.0);
}

TEST(Mmd, MatchesTheTruthTable) {
  if (!test::exists(test::reference_path("sir", 3)))
    GTEST_SKIP() << "no benchmark data at " << test::shared_path("");
  struct Case {
    std::string name, task;
    int reference, samples;
    std::size_t first_sample;
  };
  const std::vector<Case> cases{{"two_moons_obs1_halves", "two_moons", 1, 1, 5000},
                                {"slcp_obs1_vs_obs2", "slcp", 1, 2, 0},
                                {"lotka_volterra_obs1_vs_obs5", "lotka_volterra", 1, 5, 0},
                                {"gaussian_linear_obs1_vs_obs2", "gaussian_linear", 1, 2, 0},
                                {"sir_obs3_halves", "sir", 3, 3, 5000}};
  ThreadPool pool(2);
  std::size_t found = 0;
  for (const Case& c : cases) {
    const Matrix<double> reference = test::read_reference(c.task, c.reference);
    const Matrix<double> samples = test::read_reference(c.task, c.samples);
    const MmdSummary summary =
        mmd(reference, samples.view().middle_rows(c.first_sample, 5000), {.max_rows = 2000}, pool);
    for (const auto& row : test::read_truth("mmd.csv")) {
      if (row[0] != c.name) continue;
      ++found;
      EXPECT_NEAR(summary.bandwidth, std::stod(row[2]), 1e-12) << c.name;
      EXPECT_NEAR(summary.mmd2, std::stod(row[3]), 1e-12) << c.name;
    }
  }
  EXPECT_EQ(found, cases.size());
}

TEST(Mmd, GivesTheSameBitsForAnyNumberOfThreads) {
  const Matrix<double> reference = normal_rows(333, 4, 0.0, 1);
  const Matrix<double> samples = normal_rows(217, 4, 0.2, 2);
  ThreadPool one(1);
  const MmdSummary want = mmd(reference, samples, {.z_score = true}, one);
  for (const int threads : {2, 3, 7}) {
    ThreadPool pool(threads);
    const MmdSummary got = mmd(reference, samples, {.z_score = true}, pool);
    EXPECT_EQ(got.bandwidth, want.bandwidth);
    EXPECT_EQ(got.mmd2, want.mmd2);
  }
}

// For N(0, I_d) and N(mu, I_d): mmd2 = 2 (s^2 / (s^2 + 2))^(d/2) (1 - exp(-|mu|^2 / (2 (s^2 + 2)))).
double normal_mmd2(double s, double d, double mean) {
  return 2.0 * std::pow(s * s / (s * s + 2.0), 0.5 * d) *
         (1.0 - std::exp(-d * mean * mean / (2.0 * (s * s + 2.0))));
}

TEST(Mmd, IsUnbiasedForNormals) {
  constexpr int kRepeats = 40;
  ThreadPool pool(2);
  for (const double mean : {0.0, 0.5}) {
    double sum = 0.0, squares = 0.0;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const auto key = static_cast<std::uint64_t>(100 + 2 * repeat);
      const double value =
          mmd(normal_rows(150, 2, 0.0, key), normal_rows(120, 2, mean, key + 1), {.bandwidth = 1.5}, pool)
              .mmd2;
      sum += value;
      squares += value * value;
    }
    const double average = sum / kRepeats;
    const double standard_error = std::sqrt((squares / kRepeats - average * average) / (kRepeats - 1));
    EXPECT_NEAR(average, normal_mmd2(1.5, 2.0, mean), 4.0 * standard_error);
    EXPECT_GT(std::abs(average - normal_mmd2(1.5, 2.0, mean + 0.3)), 4.0 * standard_error)
        << "negative control";
  }
}

TEST(Mmd, UsesOnlyMaxRowsAndTheGivenBandwidth) {
  const Matrix<double> reference = normal_rows(60, 2, 0.0, 3);
  const Matrix<double> samples = normal_rows(50, 2, 0.0, 4);
  ThreadPool pool(1);
  const MmdSummary cut = mmd(reference, samples, {.max_rows = 40}, pool);
  const MmdSummary by_hand =
      mmd(reference.view().middle_rows(0, 40), samples.view().middle_rows(0, 40), {}, pool);
  EXPECT_EQ(cut.mmd2, by_hand.mmd2);
  EXPECT_EQ(mmd(reference, samples, {.bandwidth = 0.75}, pool).bandwidth, 0.75);
}

template <class Failure>
void expect_refusal(const Matrix<double>& reference, const Matrix<double>& samples, const MmdOptions& options,
                    const std::string& text) {
  ThreadPool pool(1);
  try {
    mmd(reference, samples, options, pool);
    FAIL() << "accepted; expected: " << text;
  } catch (const Failure& error) {
    EXPECT_EQ(std::string(error.what()), text);
  }
}

TEST(Mmd, RefusesWrongInput) {
  const Matrix<double> good = normal_rows(10, 2, 0.0, 5);
  expect_refusal<ShapeError>(
      good, normal_rows(10, 1, 0.0, 6), {},
      "mmd: reference has 2 columns and samples 1; both need the same number, at least 1");
  expect_refusal<ShapeError>(good, normal_rows(1, 2, 0.0, 6), {},
                             "mmd: samples has 1 rows; at least 2 are needed (pairs within a set)");
  Matrix<double> bad = good;
  bad(3, 0) = std::numeric_limits<double>::infinity();
  expect_refusal<DomainError>(
      bad, good, {},
      "mmd: reference holds inf in row 3, column 0 (counted from 0); remove such rows before comparing");
  expect_refusal<DomainError>(good, good, {.bandwidth = -1.0},
                              "mmd: bandwidth = -1 must be > 0, or 0 for the median distance");
  expect_refusal<DomainError>(Matrix<double>(10, 2), good, {},
                              "mmd: half of the pairs of reference rows or more coincide, so their median "
                              "distance is 0; give a bandwidth > 0");
  bad(3, 0) = 0.0;
  for (double& value : bad.values()) value *= 1e200;
  expect_refusal<DomainError>(
      bad, good, {},
      "mmd: the squared distances within reference are beyond double; rescale the columns or set z_score");
}

}  // namespace
}  // namespace nrec
