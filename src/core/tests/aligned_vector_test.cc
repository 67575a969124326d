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

TEST(AlignedVector, LargeOnesStartAHugePage) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20, kLarge = kHugePage / 4;
  for (const std::size_t bytes :
       {std::size_t{1}, kLarge - 1, kLarge, kLarge + 1, kHugePage + 1, 5 * kHugePage}) {
    void* start = allocate_lines(bytes);
    EXPECT_TRUE(starts_a_cache_line(start)) << bytes;
    if (bytes >= kLarge) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(start) % kHugePage, 0u) << bytes;
    }
    const std::size_t room = bytes >= kLarge ? (bytes + kHugePage - 1) / kHugePage * kHugePage : bytes;
    static_cast<unsigned char*>(start)[room - 1] = 1;  // whole pages are there (an address sanitizer sees it)
    free_lines(start, bytes);
  }
}

TEST(AlignedVector, RefusesMoreThanThereIs) {
  CacheLineAllocator<double> allocator;
  EXPECT_THROW(static_cast<void>(allocator.allocate(static_cast<std::size_t>(-1) / 4)),
               std::bad_array_new_length);
}

}  // namespace
}  // namespace nrec
