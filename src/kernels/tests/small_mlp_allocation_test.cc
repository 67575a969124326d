// A program of its own, because it counts every allocation of the process.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "nrec/kernels/small_mlp.h"

namespace {
std::atomic<long> allocations{0};
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* data = std::malloc(size)) return data;
  throw std::bad_alloc();
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }

namespace nrec {
namespace {

TEST(SmallMlp, StepsAndPredictionsDoNotAllocate) {
  const std::vector<float> x(2 * 64, 0.5f);
  const std::vector<std::uint8_t> labels(64, 1);
  const std::vector<std::uint32_t> rows(64, 3);
  std::vector<float> probabilities(64);
  SmallMlp narrow(2, 20, 64), wide(2, 100, 64);
  const long before = allocations;
  for (SmallMlp* network : {&narrow, &wide}) {
    network->train_step({x.data(), 64, 2}, labels, rows);
    network->predict({x.data(), 64, 2}, rows, probabilities);
  }
  EXPECT_EQ(allocations - before, 0);
  std::vector<float> one(1);
  EXPECT_EQ(allocations - before, 1);  // the counter counts
}

}  // namespace
}  // namespace nrec
