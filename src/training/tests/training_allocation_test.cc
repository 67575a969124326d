// The measuring of an epoch makes no allocation after the first: counted by replacing operator new, which is why this is a program of
// its own.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "training/tests/toy_problem.h"
#include "training/validation.h"

namespace {
std::atomic<bool> is_counting = false;
std::atomic<int> allocations = 0;
}  // namespace

// Not inlined: where the compiler sees malloc behind new, it takes free behind delete for a mistake.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (is_counting) ++allocations;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace nrec {
namespace {

TEST(Validation, MeasuresWithoutAllocationAfterTheFirstEpoch) {
  ThreadPool pool(2);
  const RunContext run{.pool = pool};
  TrainingOptions options = testing::short_training();
  options.information_thetas = 159;  // parts of 80 and 79 columns
  const TrainingData data =
      prepare_training_data(testing::toy_prior(), testing::toy_simulations(1600, pool), options, run);
  Validation validation(data, run.seed);
  for (const Norm norm : {Norm::batch, Norm::layer}) {
    const auto step = make_pair_step("auto", pool);
    const PairNetwork network = PairNetwork::initialised(
        {.dim_theta = 1, .dim_x = 1, .hidden_features = 16, .num_blocks = 2, .norm = norm}, 1);
    const auto allocations_of_an_epoch = [&] {
      allocations = 0;
      is_counting = true;
      validation.measure(*step, network, true);
      is_counting = false;
      return allocations.load();
    };
    EXPECT_GT(allocations_of_an_epoch(), 0);  // the counter counts
    EXPECT_EQ(allocations_of_an_epoch(), 0);
    EXPECT_EQ(allocations_of_an_epoch(), 0);
  }
}

}  // namespace
}  // namespace nrec
