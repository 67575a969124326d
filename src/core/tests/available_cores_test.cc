#include "core/available_cores.h"

#include <gtest/gtest.h>

#include <thread>

namespace nrec {
namespace {

TEST(AvailableCores, ReadsTheQuotaOfAControlGroup) {
  EXPECT_EQ(cores_of_quota("200000 100000"), 2);
  EXPECT_EQ(cores_of_quota("150000 100000\n"), 2);
  EXPECT_EQ(cores_of_quota("1000 100000"), 1);
  EXPECT_EQ(cores_of_quota("max 100000"), 0);
  EXPECT_EQ(cores_of_quota("-1 100000"), 0);
  EXPECT_EQ(cores_of_quota("100000 0"), 0);
  EXPECT_EQ(cores_of_quota(""), 0);
}

TEST(AvailableCores, AreNoMoreThanThereAre) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

}  // namespace
}  // namespace nrec
