#include "core/aligned_vector.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace nrec {
namespace {

bool starts_a_cache_line(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 64 == 0; }

TEST(AlignedVector, StartsACacheLineHoweverItCame) {
  for (const std::size_t n : {1u, 3u, 17u, 1000u, 100000u, 3000000u}) {
    AlignedVector<float> floats(n, 2.5f);
    AlignedVector<double> doubles(n);
    EXPECT_TRUE(starts_a_cache_line(floats.data())) << n;
    EXPECT_TRUE(starts_a_cache_line(doubles.data())) << n;
    const AlignedVector<float> copy = floats;
    EXPECT_TRUE(starts_a_cache_line(copy.data())) << n;
    floats.resize(2 * n + 1);
    EXPECT_TRUE(starts_a_cache_line(floats.data())) << n;
    EXPECT_EQ(floats[n - 1], 2.5f);
  }
}

TEST(AlignedVector, RefusesMoreThanThereIs) {
  CacheLineAllocator<double> allocator;
  EXPECT_THROW(static_cast<void>(allocator.allocate(static_cast<std::size_t>(-1) / 4)),
               std::bad_array_new_length);
}

}  // namespace
}  // namespace nrec
