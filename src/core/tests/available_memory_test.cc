#include "core/available_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace nrec {
namespace {

TEST(AvailableMemory, IsAPlausibleNumber) {
  const std::uint64_t bytes = available_memory();
  EXPECT_GT(bytes, std::uint64_t{1} << 20) << "this test itself needs that much";
  EXPECT_LT(bytes, std::uint64_t{1} << 50);
}

}  // namespace
}  // namespace nrec
