#include "nrec/diagnostics/posterior_ranks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nrec/core/error.h"
#include "nrec/diagnostics/uniformity.h"

namespace nrec {
namespace {

TEST(RandomisedRank, IsTheShareBelowWithChanceAtTies) {
  const std::vector<double> values = {2.0, 1.0, 3.0, 2.0}, weights = {1.0, 2.0, 4.0, 3.0};
  EXPECT_DOUBLE_EQ(randomised_rank(values, weights, 0.0), 0.2);
  EXPECT_DOUBLE_EQ(randomised_rank(values, weights, 1.0), 0.6);
  EXPECT_THROW(randomised_rank(values, std::vector<double>{1.0}, 0.5), ShapeError);
  EXPECT_THROW(randomised_rank({}, {}, 0.5), ShapeError);
}

/// Ranks of theta ~ N(x/2, 1/2) among three prior draws N(0, 1) weighted by the ratio, with and without the weight of theta itself.
std::vector<double> few_draw_ranks(bool with_own) {
  std::vector<double> ranks;
  for (std::uint64_t row = 0; row < 4000; ++row) {
    RandomStream random(3, Stream::check, row);
    const double truth = random.normal(), x = truth + random.normal();
    std::vector<double> values = {truth}, weights;
    for (int k = 0; k < 3; ++k) values.push_back(random.normal());
    for (const double theta : values) weights.push_back(std::exp(-0.5 * (x - theta) * (x - theta)));
    if (!with_own) weights[0] = 0.0;
    ranks.push_back(randomised_rank(values, weights, random.uniform()));
  }
  return ranks;
}

TEST(RandomisedRank, IsUniformForAnExactPosteriorHoweverFewTheDraws) {
  EXPECT_GT(test_uniformity(few_draw_ranks(true)).ks_p_value, 0.001);
  EXPECT_LT(test_uniformity(few_draw_ranks(false)).ks_p_value, 1e-10);
}

/// 200 points in two columns, point 0 in their midst.
Matrix<double> cloud() {
  Matrix<double> theta(200, 2);
  RandomStream random(8, Stream::check);
  for (std::size_t i = 1; i < theta.rows(); ++i) {
    theta(i, 0) = random.normal();
    theta(i, 1) = 0.1 * random.normal() + theta(i, 0);
  }
  return theta;
}

PosteriorRanks ranks_of(const Matrix<double>& theta) {
  std::vector<double> log_weights(theta.rows()), log_density(theta.rows());
  RandomStream random(9, Stream::check);
  for (double& value : log_weights) value = random.normal();
  for (double& value : log_density) value = random.normal();
  RandomStream choice(10, Stream::check);
  return posterior_ranks(theta, log_weights, log_density, choice);
}

TEST(PosteriorRanks, DoNotChangeWhenThetaIsShiftedAndRescaled) {
  const Matrix<double> theta = cloud();
  Matrix<double> rescaled = theta;
  for (std::size_t i = 0; i < theta.rows(); ++i) {
    rescaled(i, 0) = 3.7e4 * theta(i, 0) - 12.0;
    rescaled(i, 1) = 2.9e-5 * theta(i, 1) + 1e-3;
  }
  const PosteriorRanks before = ranks_of(theta), after = ranks_of(rescaled);
  EXPECT_NEAR(after.distance, before.distance, 1e-12);
  EXPECT_NEAR(after.direction[0], before.direction[0], 1e-6);
  EXPECT_NEAR(after.direction[1], before.direction[1], 1e-6);
  EXPECT_NEAR(after.parameter[0], before.parameter[0], 1e-12);
  EXPECT_NEAR(after.parameter[1], before.parameter[1], 1e-12);
  EXPECT_NEAR(after.density, before.density, 1e-12);
}

TEST(PosteriorRanks, DistancesThatAreNotScaledWouldChange) {
  // The same in plain Euclidean distance from a fixed point: after rescaling only the first column is left.
  const auto plain_rank = [](double scale) {
    const Matrix<double> theta = cloud();
    std::vector<double> distances, weights(theta.rows(), 1.0);
    for (std::size_t i = 0; i < theta.rows(); ++i)
      distances.push_back(std::hypot(theta(i, 0) - 0.3, scale * (theta(i, 1) + 0.5)));
    return randomised_rank(distances, weights, 0.5);
  };
  EXPECT_GT(std::fabs(plain_rank(1.0) - plain_rank(1e-5)), 0.05);
}

TEST(PosteriorRanks, DistancesComeFromAReferenceInTheBox) {
  const Matrix<double> theta(3, 1, {0.0, 10.0, 4.0});
  const std::vector<double> weights = {1.0, 1.0, 1.0};
  RandomStream random(4, Stream::check), same(4, Stream::check);
  const double reference = 10.0 * same.uniform(), sd = std::sqrt((0.0 + 100.0 + 16.0) / 3.0 - 196.0 / 9.0);
  const ReferenceDistances found = reference_distances(theta, weights, random);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(found.squares[i], std::pow((theta(i, 0) - reference) / sd, 2), 1e-9);
  EXPECT_DOUBLE_EQ(found.direction[0], reference > 14.0 / 3.0 ? 1.0 : -1.0);
}

TEST(PosteriorRanks, NameTheirOwnShare) {
  const Matrix<double> theta(2, 1, {0.0, 1.0});
  RandomStream random(1, Stream::check);
  const std::vector<double> log_weights = {std::log(3.0), 0.0}, log_density = {-1.0, 0.0};
  const PosteriorRanks ranks = posterior_ranks(theta, log_weights, log_density, random);
  EXPECT_DOUBLE_EQ(ranks.own_share, 0.75);
  EXPECT_LT(ranks.parameter[0], 0.75);
  EXPECT_GT(ranks.density, 0.25);  // the other point has the higher density
}

TEST(PosteriorRanks, RefusesSetsWithoutWeight) {
  const Matrix<double> theta(2, 1, {0.0, 1.0});
  RandomStream random(1, Stream::check);
  const std::vector<double> none(2, -std::numeric_limits<double>::infinity()), three(3, 0.0), two(2, 0.0);
  EXPECT_THROW(posterior_ranks(theta, none, two, random), DomainError);
  EXPECT_THROW(posterior_ranks(theta, three, two, random), ShapeError);
}

}  // namespace
}  // namespace nrec
