// One transition at a time, without a posterior: the test itself is the density.
#include "inference/nuts_tree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "inference/chain_statistics.h"

namespace nrec {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// A correlated Gaussian: precision [[2, -1.2], [-1.2, 1]], covariance [[1, 1.2], [1.2, 2]] / 0.56.
double gaussian(std::span<const double> u, std::span<double> gradient) {
  gradient[0] = -(2 * u[0] - 1.2 * u[1]);
  gradient[1] = -(-1.2 * u[0] + u[1]);
  return 0.5 * (u[0] * gradient[0] + u[1] * gradient[1]);
}

template <class Density>
void finish(NutsTree& tree, std::size_t dim, const Density& density) {
  std::vector<double> gradient(dim);
  while (!tree.is_done()) {
    const double value = density(tree.pending(), std::span<double>(gradient));
    tree.receive(value, gradient);
  }
}

template <class Density>
ChainPoint point_at(std::vector<double> u, const Density& density) {
  ChainPoint point{u, std::vector<double>(u.size()), 0.0};
  point.log_density = density(point.u, std::span<double>(point.gradient));
  return point;
}

/// A chain on the correlated Gaussian; `density` is asked instead of it inside the trajectories.
template <class Density>
std::vector<Chains> gaussian_chain(std::size_t draws, double step_size, const Density& density) {
  const std::vector<double> inverse_mass = {1.5, 3.0};
  NutsTree tree(2);
  ChainPoint here = point_at({0.3, -0.2}, gaussian);
  std::vector<Chains> columns(2, Chains(1));
  for (std::size_t i = 0; i < draws; ++i) {
    tree.begin(here, inverse_mass, step_size, RandomStream(4, Stream::chain, i));
    finish(tree, 2, density);
    here = tree.result();
    for (std::size_t d = 0; d < 2; ++d) columns[d][0].push_back(here.u[d]);
  }
  return columns;
}

struct Moment {
  double value, standard_error;
};
Moment mean_of(const Chains& chains) {
  double sum = 0.0;
  for (const double v : chains[0]) sum += v;
  return {sum / static_cast<double>(chains[0].size()), mcse_mean(chains)};
}
/// How many standard errors the mean, the variances and the covariance are off, at most.
double worst_deviation(const std::vector<Chains>& columns) {
  const auto product = [&](std::size_t a, std::size_t b) {
    Chains result = columns[a];
    for (std::size_t i = 0; i < result[0].size(); ++i) result[0][i] *= columns[b][0][i];
    return mean_of(result);
  };
  double worst = 0.0;
  const auto look = [&](Moment m, double truth) {
    worst = std::max(worst, std::fabs(m.value - truth) / m.standard_error);
  };
  look(mean_of(columns[0]), 0.0);
  look(mean_of(columns[1]), 0.0);
  look(product(0, 0), 1 / 0.56);
  look(product(0, 1), 1.2 / 0.56);
  look(product(1, 1), 2 / 0.56);
  return worst;
}

TEST(NutsTree, LeavesAGaussianAsItIs) {
  for (const double step_size : {0.15, 0.6, 1.0})
    EXPECT_LT(worst_deviation(gaussian_chain(20000, step_size, gaussian)), 4);
}

TEST(NutsTree, AnyForceOfThePositionAloneIsExact) {
  // Half the gradient: a worse proposal, the same distribution.
  const auto weak = [](std::span<const double> u, std::span<double> gradient) {
    const double value = gaussian(u, gradient);
    for (double& g : gradient) g *= 0.5;
    return value;
  };
  EXPECT_LT(worst_deviation(gaussian_chain(20000, 0.4, weak)), 4);
}

TEST(NutsTree, AForceThatRemembersIsNotExact) {
  // Negative control: friction along the trajectory is not reversible, and the moments must show it.
  std::vector<double> before = {0.0, 0.0};
  const auto friction = [&](std::span<const double> u, std::span<double> gradient) {
    const double value = gaussian(u, gradient);
    for (std::size_t d = 0; d < 2; ++d) {
      gradient[d] -= 0.1 * (u[d] - before[d]);
      before[d] = u[d];
    }
    return value;
  };
  EXPECT_GT(worst_deviation(gaussian_chain(20000, 0.6, friction)), 6);
}

TEST(NutsTree, TurnsAfterHalfAPeriod) {
  // In a round Gaussian of unit width any trajectory comes back after pi: 31 steps of 0.1.
  const auto round = [](std::span<const double> u, std::span<double> gradient) {
    double value = 0.0;
    for (std::size_t d = 0; d < u.size(); ++d) {
      gradient[d] = -u[d];
      value -= 0.5 * u[d] * u[d];
    }
    return value;
  };
  NutsTree tree(5);
  ChainPoint here = point_at(std::vector<double>(5, 0.5), round);
  double length = 0.0;
  for (std::size_t i = 0; i < 500; ++i) {
    tree.begin(here, std::vector<double>(5, 1.0), 0.1, RandomStream(5, Stream::chain, i));
    finish(tree, 5, round);
    here = tree.result();
    const TransitionStatistics s = tree.statistics();
    EXPECT_FALSE(s.diverging);
    EXPECT_GT(s.acceptance_rate, 0.95);
    EXPECT_LT(s.n_steps, 1 << (s.tree_depth + 1));
    EXPECT_GE(s.n_steps, (1 << s.tree_depth) - 1);
    ASSERT_LE(s.n_steps, 63);
    length += 0.1 * s.n_steps / 500;
  }
  EXPECT_GT(length, 1.5);
  EXPECT_LT(length, 4.5);
}

TEST(NutsTree, EndsAtTheLargestTreeOnAPlain) {
  const auto plain = [](std::span<const double>, std::span<double> gradient) {
    gradient[0] = 0.0;
    return 0.0;
  };
  NutsTree tree(1);
  tree.begin(point_at({0.0}, plain), std::vector<double>{1.0}, 0.01, RandomStream(6, Stream::chain));
  finish(tree, 1, plain);
  EXPECT_EQ(tree.statistics().n_steps, 1023);
  EXPECT_EQ(tree.statistics().tree_depth, NutsTree::kMaxDepth);
  EXPECT_EQ(tree.statistics().acceptance_rate, 1.0);
  EXPECT_NE(tree.result().u[0], 0.0);
}

TEST(NutsTree, DivergesWhereTheDensityEndsAndNeverLeavesItsSupport) {
  const auto cliff = [](std::span<const double> u, std::span<double> gradient) {
    gradient[0] = 1.0;
    return u[0] < 1.0 ? u[0] : -kInf;
  };
  NutsTree tree(1);
  ChainPoint here = point_at({0.5}, cliff);
  std::size_t diverging = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    tree.begin(here, std::vector<double>{1.0}, 0.3, RandomStream(7, Stream::chain, i));
    finish(tree, 1, cliff);
    here = tree.result();
    ASSERT_LT(here.u[0], 1.0);
    ASSERT_EQ(here.log_density, here.u[0]);
    diverging += tree.statistics().diverging;
  }
  EXPECT_GT(diverging, 20u);
}

TEST(NutsTree, NanAndOverflowAreDivergences) {
  const auto nan = [](std::span<const double>, std::span<double> gradient) {
    gradient[0] = std::nan("");
    return std::nan("");
  };
  NutsTree tree(1);
  const ChainPoint here{{0.25}, {0.0}, 0.0};
  tree.begin(here, std::vector<double>{1.0}, 0.1, RandomStream(8, Stream::chain));
  finish(tree, 1, nan);
  EXPECT_TRUE(tree.statistics().diverging);
  EXPECT_EQ(tree.result().u, here.u);
  EXPECT_EQ(tree.statistics().acceptance_rate, 0.0);
  tree.begin({{0.25}, {1e300}, 0.0}, std::vector<double>{1.0}, 1e300, RandomStream(8, Stream::chain));
  EXPECT_TRUE(tree.is_done());  // no finite point to ask for
  EXPECT_TRUE(tree.statistics().diverging);
  EXPECT_EQ(tree.result().u, here.u);
}

TEST(NutsTree, IsAPureFunctionOfItsStream) {
  const auto once = [](std::uint64_t row) {
    NutsTree tree(2);
    tree.begin(point_at({0.3, -0.2}, gaussian), std::vector<double>{1.0, 2.0}, 0.3,
               RandomStream(9, Stream::chain, row));
    finish(tree, 2, gaussian);
    return tree.result().u;
  };
  EXPECT_EQ(once(0), once(0));
  EXPECT_NE(once(0), once(1));
}

/// By recursion, from the definition: some balanced part of leaves first .. first + size - 1 that ends with the last turns.
bool ends_with_a_turn(const std::vector<std::vector<double>>& p, std::size_t leaf,
                      std::span<const double> mass) {
  const auto sum = [&](std::size_t first, std::size_t last) {
    std::vector<double> total(mass.size());
    for (std::size_t i = first; i <= last; ++i) {
      for (std::size_t d = 0; d < total.size(); ++d) total[d] += p[i][d];
    }
    return total;
  };
  for (std::size_t size = 2; (leaf + 1) % size == 0 && size <= leaf + 1; size *= 2) {
    const std::size_t first = leaf + 1 - size, middle = leaf + 1 - size / 2;
    if (has_turned(p[first], p[leaf], sum(first, leaf), mass)) return true;
    if (size == 2) continue;
    if (has_turned(p[first], p[middle], sum(first, middle), mass)) return true;
    if (has_turned(p[middle - 1], p[leaf], sum(middle - 1, leaf), mass)) return true;
  }
  return false;
}

TEST(SubtreeTurns, SeesWhatTheRecursionSees) {
  const std::vector<double> mass = {0.5, 1.0, 2.0};
  std::size_t turns = 0, straight = 0;
  for (std::uint64_t trial = 0; trial < 30; ++trial) {
    RandomStream random(10, Stream::check, trial);
    const double drift = 0.1 * static_cast<double>(trial);
    SubtreeTurns watched(3, 10);
    watched.begin();
    std::vector<std::vector<double>> momenta;
    for (std::size_t leaf = 0; leaf < 512; ++leaf) {
      momenta.push_back({random.normal() + drift, random.normal(), random.normal() - drift});
      const bool expected = ends_with_a_turn(momenta, leaf, mass);
      ASSERT_EQ(watched.add(momenta.back(), mass), expected) << "trial " << trial << ", leaf " << leaf;
      (expected ? turns : straight) += 1;
    }
  }
  EXPECT_GT(turns, 1000u);
  EXPECT_GT(straight, 1000u);
}

}  // namespace
}  // namespace nrec
