// Against ArviZ 0.23.4 (arviz.rhat; arviz.ess with method "bulk" and "tail"; arviz.mcse with method "mean", "sd" and
// "quantile") on chains that any program can regenerate.
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
    double shift, r_hat, bulk, tail, mean, sd, quantile05, quantile50, quantile95;
  };
  const Case cases[] = {
      {4, 100, 0.0, 1.0112038545097868, 118.60566732622142, 277.14141769408445, 0.0856554538773411,
       0.026007830283658412, 0.050615890593387, 0.13072613836146108, 0.048738659377361104},
      {4, 101, 0.3, 1.0904085847380764, 88.4046444774926, 146.80119286360002, 0.10603450278021612,
       0.04008195620050997, 0.13212486022148684, 0.1441721411754282, 0.08677947656888674},
      {2, 37, 0.0, 1.0051285826532037, 25.103685448353243, 80.30063694267514, 0.2069127890060933,
       0.05278451008412981, 0.16867631517228288, 0.33324921590740736, 0.07368568819113697},
      {1, 50, 0.0, std::nan(""), 10.204984322084718, 54.52166327420763, 0.33016293446691564,
       0.05542566577530683, 0.14844795973363079, 0.5617203931411724, 0.15185495274373517}};
  for (const Case& c : cases) {
    const Chains chains = wavy_chains(c.m, c.n, c.shift);
    if (c.m > 1) {
      EXPECT_NEAR(split_r_hat(chains), c.r_hat, 1e-8);
    }
    EXPECT_NEAR(bulk_ess(chains), c.bulk, 1e-8 * c.bulk);
    EXPECT_NEAR(tail_ess(chains), c.tail, 1e-8 * c.tail);
    EXPECT_NEAR(mcse_mean(chains), c.mean, 1e-8 * c.mean);
    EXPECT_NEAR(mcse_sd(chains), c.sd, 1e-8 * c.sd);
    EXPECT_NEAR(mcse_quantile(chains, 0.05), c.quantile05, 1e-8);
    EXPECT_NEAR(mcse_quantile(chains, 0.50), c.quantile50, 1e-8);
    EXPECT_NEAR(mcse_quantile(chains, 0.95), c.quantile95, 1e-8);
  }
}

TEST(ChainStatistics, ShortOrConstantChainsAreNotJudged) {
  EXPECT_TRUE(std::isnan(bulk_ess({{1, 2, 3}})));
  EXPECT_TRUE(std::isnan(split_r_hat({})));
  EXPECT_TRUE(std::isnan(mcse_mean({{1, 2, 3}})));
  EXPECT_TRUE(std::isnan(mcse_sd({{1, 2, 3}})));
  EXPECT_TRUE(std::isnan(mcse_quantile({{1, 2, 3}}, 0.5)));
  EXPECT_EQ(mcse_mean({{2, 2, 2, 2}, {2, 2, 2, 2}}), 0.0);
  EXPECT_EQ(mcse_quantile({{2, 2, 2, 2}}, 0.5), 0.0);
  EXPECT_TRUE(std::isnan(split_r_hat({{1, 1, 1, 1}, {1, 1, 1, 1}})));
}

TEST(ChainStatistics, LongChainsOfQuickMixingCostLittle) {
  // A million draws: the autocovariances of all lags would take 2e11 multiplications a chain.
  const Chains chains = wavy_chains(2, 500000, 0.0);
  EXPECT_GT(bulk_ess(chains), 1e3);
  EXPECT_LT(mcse_mean(chains), 0.05);
}

}  // namespace
}  // namespace nrec
