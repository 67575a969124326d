#include "inference/tempered_population.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "inference/chain_draws.h"
#include "inference/chain_starts.h"
#include "inference/resampling.h"
#include "inference/tests/exact_posteriors.h"

namespace nrec {
namespace {

using testing::gaussian_ratio;
using testing::uniform_prior;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

TEST(Exponents, AreTheLargestAtWhichTheWeightsAreWorthEnough) {
  const std::vector<double> two = {0.0, 0.0, kMinusInfinity, -1e9};
  EXPECT_DOUBLE_EQ(effective_number(two, 1.0), 2.0);
  EXPECT_DOUBLE_EQ(effective_number({two.begin() + 2, two.begin() + 3}, 1.0), 0.0);
  EXPECT_EQ(largest_exponent(two, 2.0, 1.0), 1.0);
  // Two weights 1 and exp(-e): worth (1 + w)^2 / (1 + w^2).
  const std::vector<double> pair = {0.0, -1e6};
  const double e = largest_exponent(pair, 1.5, 1.0);
  const double w = std::exp(-1e6 * e);
  EXPECT_NEAR((1 + w) * (1 + w) / (1 + w * w), 1.5, 1e-3);
  EXPECT_EQ(largest_exponent(pair, 2.5, 1.0), 0.0);  // two can never be worth more than two
}

TEST(SystematicRows, ComeAsOftenAsTheirWeights) {
  const std::vector<double> weights = {0.0, 3.0, 0.0, 1.0, 2.0, 0.0};
  EXPECT_EQ(systematic_rows(weights, 6, 0.5), (std::vector<std::size_t>{1, 1, 1, 3, 4, 4}));
  EXPECT_EQ(systematic_rows(weights, 1, 0.999), (std::vector<std::size_t>{4}));
  EXPECT_TRUE(systematic_rows(weights, 0, 0.5).empty());
}

class Tempering : public ::testing::Test {
 protected:
  TemperedPopulation grow(const Posterior& posterior, std::int64_t max_evaluations = 100000000,
                          std::uint64_t seed = 1, int threads = 2) {
    options_.max_evaluations = max_evaluations;
    ThreadPool pool(threads);
    const RunContext run{.pool = pool, .seed = seed};
    SamplingBudget budget(options_, run);
    TemperedPopulation population = temper(posterior, budget, run);
    spent_ = budget.evaluations();
    return population;
  }
  SamplingOptions options_;
  std::int64_t spent_ = 0;
};

TEST_F(Tempering, IsImportanceResamplingWhereThePriorReaches) {
  const TemperedPopulation population = grow(gaussian_ratio(uniform_prior(0, 1, 1), 0.3, 0.1));
  EXPECT_EQ(population.status, SamplingStatus::complete);
  EXPECT_EQ(population.num_stages, 0u);
  EXPECT_EQ(population.points.size(), 1000u);
  EXPECT_EQ(spent_, 101000);
}

TEST_F(Tempering, ReachesPosteriorsThatNoPriorDrawHasSeen) {
  const Posterior posterior = gaussian_ratio(uniform_prior(0, 1, 5), 0.3, 1e-4);
  const TemperedPopulation population = grow(posterior);
  ASSERT_EQ(population.status, SamplingStatus::complete);
  EXPECT_GT(population.num_stages, 10u);
  EXPECT_LT(population.num_stages, 40u);
  double square = 0.0;  // chi-squared of five coordinates, mean 5
  for (const TemperedPoint& point : population.points) square -= 2 * point.log_ratio / 1000;
  EXPECT_NEAR(square, 5.0, 4 * std::sqrt(10.0 / 500));  // worth 500 at least
  const std::vector<TemperedPoint> starts = chain_starts(population, 100);
  EXPECT_EQ(starts.size(), 100u);
  EXPECT_EQ(starts[99].u, population.points[990].u);
}

TEST_F(Tempering, GivesModesTheirWeightsOverManySeeds) {
  // Weights 0.7 and 0.3 at +-1 in four dimensions, each 1e-2 wide in the units of the prior.
  const Posterior posterior = testing::exact(
      uniform_prior(-5, 5, 4), [](MatrixView<const double> theta, std::span<double> r, MatrixView<double>) {
        for (std::size_t i = 0; i < theta.rows; ++i) {
          const double centre = theta(i, 0) > 0 ? 1.0 : -1.0;
          r[i] = std::log(centre > 0 ? 0.7 : 0.3);
          for (const double t : theta.row(i)) r[i] -= 0.5 * std::pow((t - centre) / 0.1, 2);
        }
      });
  constexpr int kSeeds = 12;
  double mean = 0.0, square = 0.0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const TemperedPopulation population = grow(posterior, 100000000, static_cast<std::uint64_t>(seed));
    double above = 0.0;
    for (const TemperedPoint& point : population.points) above += point.u[0] > 0 ? 1e-3 : 0.0;
    mean += above / kSeeds;
    square += above * above / kSeeds;
  }
  const double sd = std::sqrt(square - mean * mean);
  EXPECT_LT(sd, 0.06);
  EXPECT_NEAR(mean, 0.7, 4 * sd / std::sqrt(kSeeds));
  EXPECT_GT(std::fabs(mean - 0.5), 4 * sd / std::sqrt(kSeeds));
}

TEST_F(Tempering, IsAPureFunctionOfTheSeed) {
  const Posterior posterior = gaussian_ratio(uniform_prior(0, 1, 2), 0.3, 1e-4);
  const TemperedPopulation first = grow(posterior, 100000000, 1, 1);
  const TemperedPopulation second = grow(posterior, 100000000, 1, 3);
  const TemperedPopulation other = grow(posterior, 100000000, 2, 3);
  ASSERT_EQ(first.points.size(), second.points.size());
  for (std::size_t i = 0; i < first.points.size(); ++i) EXPECT_EQ(first.points[i].u, second.points[i].u);
  EXPECT_NE(first.points[0].u, other.points[0].u);
}

TEST_F(Tempering, EndsWithItsBudgetAndWithoutSupport) {
  const Posterior narrow = gaussian_ratio(uniform_prior(0, 1, 5), 0.3, 1e-4);
  for (const std::int64_t budget : {1, 1500, 150000, 200000}) {
    const TemperedPopulation population = grow(narrow, budget);
    EXPECT_EQ(population.status, SamplingStatus::budget_spent) << budget;
    EXPECT_TRUE(population.points.empty());
    EXPECT_LE(spent_, budget);
  }
  const auto nowhere = [](MatrixView<const double>, std::span<double> r, MatrixView<double>) {
    std::fill(r.begin(), r.end(), std::nan(""));
  };
  EXPECT_EQ(grow(testing::exact(uniform_prior(0, 1, 1), nowhere)).status, SamplingStatus::no_support);
}

TEST(Jumps, AddDifferencesOfTheArchiveToSomeOrAllCoordinates) {
  const ModeJumps jumps(Matrix<double>(2, 3, {0, 0, 0, 1, 10, 100}));
  RandomStream random(1, Stream::chain);
  const std::vector<double> from = {5, 5, 5};
  std::vector<double> to(3);
  int up = 0, changed[3] = {0, 0, 0};
  for (int i = 0; i < 4000; ++i) {
    jumps.propose(from, true, random, to);
    const double sign = to[0] - 5;
    ASSERT_EQ(std::fabs(sign), 1.0);
    ASSERT_EQ(to[1], 5 + 10 * sign);
    ASSERT_EQ(to[2], 5 + 100 * sign);
    up += sign > 0;
    jumps.propose(from, false, random, to);
    ASSERT_NE(to, from);
    for (std::size_t d = 0; d < 3; ++d) changed[d] += to[d] != from[d];
  }
  EXPECT_NEAR(up, 2000, 4 * std::sqrt(1000.0));  // symmetric
  // One is chosen for sure, the others by halves: 1/3 + 2/3 1/2 = 2/3.
  for (const int count : changed) EXPECT_NEAR(count, 4000 * 2 / 3.0, 4 * std::sqrt(4000 * 2 / 9.0));
  ModeJumps(Matrix<double>(1, 3)).propose(from, true, random, to);
  EXPECT_EQ(to, from);
}

TEST(RunLength, DoublesOnlyWhereThatCanHelp) {
  RunLength agreed(100), near(100), far(100);
  EXPECT_FALSE(agreed.extend(1.05));
  EXPECT_FALSE(agreed.is_extended());
  EXPECT_FALSE(far.extend(1.4));  // would need more than eight times as many iterations
  EXPECT_FALSE(far.extend(std::nan("")));
  EXPECT_TRUE(near.extend(1.3));
  EXPECT_EQ(near.total(), 200u);
  EXPECT_FALSE(near.extend(1.3));  // not on the way to agree
  EXPECT_TRUE(near.extend(1.15));
  EXPECT_TRUE(near.extend(1.06));
  EXPECT_FALSE(near.extend(1.06));  // eight times is the end
  EXPECT_EQ(near.total(), 800u);
  EXPECT_TRUE(near.is_extended());
}

TEST(KeepLast, DropsTheFrontOfEveryChain) {
  std::vector<std::vector<int>> chains = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  keep_last(chains, 9);
  EXPECT_EQ(chains[0].size(), 4u);
  keep_last(chains, 3);
  EXPECT_EQ(chains, (std::vector<std::vector<int>>{{2, 3, 4}, {6, 7, 8}}));
}

TEST(ChainEnsemble, LeavesTheTemperedDistributionAsItIs) {
  // Exponent 0.25 of a normal of sd 0.5 is one of sd 1.
  const Posterior posterior = gaussian_ratio(uniform_prior(-50, 50, 2), 0.3, 0.5, 0.5);
  SamplingOptions options;
  ThreadPool pool(1);
  const RunContext run{.pool = pool};
  SamplingBudget budget(options, run);
  const TemperedValues there = evaluate_tempered(posterior, Matrix<double>(1, 2), budget);
  const TemperedPoint start{{0.0, 0.0}, there.log_prior[0], there.log_ratio[0]};
  ChainEnsemble chains(posterior, budget, 1, 0, std::vector<TemperedPoint>(200, start), {1.0, 1.0});
  const ModeJumps none(Matrix<double>(0, 2));
  double mean = 0.0, square = 0.0;
  constexpr int kSweeps = 60, kWarmup = 20;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    ASSERT_TRUE(chains.sweep(0.25));
    if (sweep < kWarmup) chains.adapt_widths(1.0 / (sweep + 1));
    if (sweep < kWarmup) continue;
    for (const TemperedPoint& at : chains.points()) {
      const double t = -50 + 100 / (1 + std::exp(-at.u[0])) - 0.3;
      mean += t / (200 * (kSweeps - kWarmup));
      square += t * t / (200 * (kSweeps - kWarmup));
    }
  }
  // 8,000 points that are worth more than 2,000.
  EXPECT_NEAR(mean, 0.0, 4 * 1.0 / std::sqrt(2000.0));
  EXPECT_NEAR(square, 1.0, 4 * std::sqrt(2.0 / 2000));
  ASSERT_TRUE(chains.jump(none, 0.25));
  EXPECT_EQ(chains.jump_rate(), 1.0);  // nowhere to go
}

}  // namespace
}  // namespace nrec
