#include "nrec/training/contrastive_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "nrec/core/error.h"

namespace nrec {
namespace {

TEST(ContrastiveBatch, SharedSetsNeverHoldTheOwnThetaOrRepeatOne) {
  const ContrastiveLoss loss(LossKind::nre_c, 9, 1.0, true);
  Matrix<std::uint32_t> candidates(30, loss.num_columns());
  RandomStream random(1, Stream::contrast);
  fill_candidates(loss, 0, 30, random, candidates);
  for (std::size_t b = 0; b < 30; ++b) {
    EXPECT_EQ(candidates(b, 0), b);
    EXPECT_EQ(std::set<std::uint32_t>(candidates.row(b).begin(), candidates.row(b).end()).size(), 10u);
  }
}

TEST(ContrastiveBatch, IndependentSetsDifferBetweenRowsAndTerms) {
  const std::size_t k = 8;
  const ContrastiveLoss loss(LossKind::nre_c, k, 1.0, false);
  Matrix<std::uint32_t> candidates(50, loss.num_columns());
  RandomStream random(1, Stream::contrast);
  fill_candidates(loss, 0, 50, random, candidates);
  std::set<std::uint32_t> first_distances;
  for (std::size_t b = 0; b < 50; ++b) {
    const auto row = candidates.row(b);
    EXPECT_EQ(std::set<std::uint32_t>(row.begin(), row.begin() + k).size(), k);  // joint term with own
    EXPECT_EQ(std::set<std::uint32_t>(row.begin() + k, row.end()).size(), k);    // marginal term
    EXPECT_EQ(std::count(row.begin() + k, row.end(), static_cast<std::uint32_t>(b)), 0);
    first_distances.insert((row[1] + 50 - static_cast<std::uint32_t>(b)) % 50);
  }
  EXPECT_GT(first_distances.size(), 10u);
}

TEST(ContrastiveBatch, EveryOtherThetaIsEquallyLikely) {
  const ContrastiveLoss loss(LossKind::nre_c, 3, 1.0, true);
  std::vector<int> counts(12);
  const int repeats = 4000;
  for (int t = 0; t < repeats; ++t) {
    Matrix<std::uint32_t> candidates(12, loss.num_columns());
    RandomStream random(1, Stream::contrast, static_cast<std::uint64_t>(t));
    fill_candidates(loss, 0, 12, random, candidates);
    for (std::size_t j = 1; j < 4; ++j) ++counts[candidates(5, j)];
  }
  EXPECT_EQ(counts[5], 0);
  for (std::size_t i = 0; i < 12; ++i) {
    if (i != 5) {
      EXPECT_NEAR(counts[i], repeats * 3.0 / 11, 5 * std::sqrt(repeats * 3.0 / 11)) << i;
    }
  }
}

TEST(ContrastiveBatch, MultiClassNeedsOneFewerOther) {
  const ContrastiveLoss loss(LossKind::nre_b, 10, 1.0, true);
  Matrix<std::uint32_t> candidates(10, loss.num_columns());
  RandomStream random(1, Stream::contrast);
  fill_candidates(loss, 0, 10, random, candidates);
  try {
    fill_candidates(loss, 0, 9, random, candidates);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_EQ(std::string(error.what()),
              "contrastive batch: 9 contrastive parameters need a pool of at least 10 thetas but it has 9");
  }
}

}  // namespace
}  // namespace nrec
