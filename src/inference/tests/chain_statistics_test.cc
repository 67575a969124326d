// Against ArviZ 0.23.4 (arviz.rhat, arviz.ess with method "bulk" and "tail") on chains that any program can regenerate.
#include "inference/chain_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nrec {
namespace {

Chains wavy_chains(int m, int n, double shift) {
  Chains chains(static_cast<std::size_t>(m));
  for (int c = 0; c < m; ++c) {
    for (int i = 0; i < n; ++i) {
      chains[static_cast<std::size_t>(c)].push_back(
          std::sin(0.37 * i + 1.3 * c) + 0.8 * std::cos(12.9898 * i * (c + 1) + 0.1 * i * i) + shift * c);
    }
  }
  return chains;
}

TEST(ChainStatistics, EqualsArviz) {
  struct Case {
    int m, n;
    double shift, r_hat, bulk, tail;
  };
  const Case cases[] = {{4, 100, 0.0, 1.0112038545097868, 118.60566732622141, 277.14141769408445},
                        {4, 101, 0.3, 1.0904085847380764, 88.4046444774926, 146.80119286360002},
                        {2, 37, 0.0, 1.0051285826532037, 25.103685448353243, 80.30063694267514},
                        {1, 50, 0.0, std::nan(""), 10.204984322084718, 54.52166327420763}};
  for (const Case& c : cases) {
    const Chains chains = wavy_chains(c.m, c.n, c.shift);
    if (c.m > 1) {
      EXPECT_NEAR(split_r_hat(chains), c.r_hat, 1e-8);
    }
    EXPECT_NEAR(bulk_ess(chains), c.bulk, 1e-8 * c.bulk);
    EXPECT_NEAR(tail_ess(chains), c.tail, 1e-8 * c.tail);
  }
}

TEST(ChainStatistics, ShortOrConstantChainsAreNotJudged) {
  EXPECT_TRUE(std::isnan(bulk_ess({{1, 2, 3}})));
  EXPECT_TRUE(std::isnan(split_r_hat({})));
  EXPECT_TRUE(std::isnan(split_r_hat({{1, 1, 1, 1}, {1, 1, 1, 1}})));
}

}  // namespace
}  // namespace nrec
