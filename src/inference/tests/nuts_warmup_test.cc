#include "inference/nuts_warmup.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nrec/core/random.h"

namespace nrec {
namespace {

TEST(DualAveraging, FindsTheStepSizeOfTheTargetFromFarAway) {
  // acceptance(step) = exp(-step): 0.8 at 0.223.
  for (const double start : {1e-4, 1.0, 50.0}) {
    DualAveraging averaging(0.8);
    averaging.restart(start);
    RandomStream random(1, Stream::check);
    double step = start;
    for (int i = 0; i < 300; ++i)
      step = averaging.next(std::min(1.0, std::max(0.0, std::exp(-step) + 0.05 * random.normal())));
    EXPECT_NEAR(averaging.averaged(), -std::log(0.8), 0.03) << start;
  }
}

TEST(DualAveraging, KeepsItsStartUntilItIsTold) {
  DualAveraging averaging(0.8);
  averaging.restart(0.37);
  EXPECT_EQ(averaging.averaged(), 0.37);
  averaging.next(0.1);
  averaging.restart(0.5);
  EXPECT_EQ(averaging.averaged(), 0.5);
}

TEST(WarmupSchedule, WindowsDoubleAndTheLastTakesWhatIsLeft) {
  const WarmupSchedule schedule(200);
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < 200; ++i) {
    if (schedule.ends_window(i)) ends.push_back(i + 1);
  }
  EXPECT_EQ(ends, (std::vector<std::size_t>{80, 160}));
  EXPECT_FALSE(schedule.is_in_window(59));
  EXPECT_TRUE(schedule.is_in_window(60));
  EXPECT_TRUE(schedule.is_in_window(159));
  EXPECT_FALSE(schedule.is_in_window(160));
  for (const std::size_t length : {0u, 1u, 2u, 7u, 1000u}) {
    const WarmupSchedule other(length);
    std::size_t last = 0;
    for (std::size_t i = 0; i < length; ++i) {
      if (other.ends_window(i)) last = i + 1;
    }
    EXPECT_LE(last, length);
    EXPECT_EQ(last, length - length / 5) << length;
  }
}

TEST(PooledVariance, IsTheVarianceWithinChains) {
  PooledVariance pooled(4, 2);
  for (std::size_t c = 0; c < 4; ++c) {
    RandomStream random(2, Stream::check, c);
    const double centre = 100.0 * static_cast<double>(c);  // separate modes
    for (int i = 0; i < 2000; ++i) {
      const std::vector<double> u = {centre + 3 * random.normal(), 1e-5 * random.normal()};
      pooled.add(c, u);
    }
  }
  const std::vector<double> variance = pooled.take(std::vector<double>{9.0, 1.0});
  EXPECT_NEAR(variance[0], 9.0, 4 * 9.0 * std::sqrt(2 / 8000.0));
  EXPECT_NEAR(variance[1], 1e-10,
              0.08 * 1e-10);  // a guess that is wrong by ten powers of ten does little harm
  // Cleared, and nothing moved: the guess.
  for (int i = 0; i < 10; ++i) pooled.add(1, std::vector<double>{5.0, 5.0});
  EXPECT_EQ(pooled.take(std::vector<double>{2.0, 3.0}), (std::vector<double>{2.0, 3.0}));
  EXPECT_EQ(pooled.take(std::vector<double>{2.0, 3.0}), (std::vector<double>{2.0, 3.0}));
}

}  // namespace
}  // namespace nrec
