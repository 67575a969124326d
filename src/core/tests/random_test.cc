#include "nrec/core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace nrec {
namespace {

TEST(RandomStream, MatchesKnownAnswerOfPhilox4x32) {
  // Published known-answer test: counter = 0, key = 0 gives 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
  RandomStream stream(0, static_cast<Stream>(0), 0);
  EXPECT_EQ(stream.bits32(), 0x6627e8d5u);
  EXPECT_EQ(stream.bits32(), 0xe169c58du);
  EXPECT_EQ(stream.bits32(), 0xbc57ac4cu);
  EXPECT_EQ(stream.bits32(), 0x9b00dbd8u);
}

TEST(RandomStream, IsAPureFunctionOfItsKey) {
  RandomStream a(7, Stream::prior, 3);
  RandomStream b(7, Stream::prior, 3);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.bits64(), b.bits64());
}

TEST(RandomStream, DiffersBySeedStreamAndRow) {
  std::set<std::uint64_t> firsts;
  for (const std::uint64_t seed : {1ull, 2ull, 1ull << 40}) {
    for (const Stream stream : {Stream::prior, Stream::simulator}) {
      for (const std::uint64_t row : {0ull, 1ull, 1ull << 33})
        firsts.insert(RandomStream(seed, stream, row).bits64());
    }
  }
  EXPECT_EQ(firsts.size(), 18u);
}

TEST(RandomStream, UniformAndNormalHaveTheirMoments) {
  RandomStream stream(1, Stream::check);
  const int n = 200000;
  double sum_u = 0, sum_z = 0, sum_z2 = 0, sum_z4 = 0;
  for (int i = 0; i < n; ++i) {
    const double u = stream.uniform();
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum_u += u;
    const double z = stream.normal();
    sum_z += z;
    sum_z2 += z * z;
    sum_z4 += z * z * z * z;
  }
  const double root = std::sqrt(static_cast<double>(n));
  EXPECT_NEAR(sum_u / n, 0.5, 4 * std::sqrt(1.0 / 12) / root);
  EXPECT_NEAR(sum_z / n, 0.0, 4 / root);
  EXPECT_NEAR(sum_z2 / n, 1.0, 4 * std::sqrt(2.0) / root);
  EXPECT_NEAR(sum_z4 / n, 3.0, 4 * std::sqrt(96.0) / root);
}

TEST(RandomStream, IntegerIsUniformBelowItsBound) {
  RandomStream stream(1, Stream::check, 5);
  const int n = 70000;
  std::vector<int> counts(7);
  for (int i = 0; i < n; ++i) ++counts.at(stream.integer(7));
  double chi2 = 0;
  for (const int c : counts) chi2 += (c - n / 7.0) * (c - n / 7.0) / (n / 7.0);
  EXPECT_LT(chi2, 22.5);  // 99.9 % point of chi-squared with 6 degrees of freedom
}

TEST(RandomStream, ShuffleIsAPermutation) {
  std::vector<std::uint32_t> values(100);
  for (std::uint32_t i = 0; i < 100; ++i) values[i] = i;
  RandomStream stream(3, Stream::split);
  stream.shuffle(values);
  EXPECT_EQ(std::set<std::uint32_t>(values.begin(), values.end()).size(), 100u);
  EXPECT_NE(values[0] * 100 + values[1], 1u);
}

}  // namespace
}  // namespace nrec
