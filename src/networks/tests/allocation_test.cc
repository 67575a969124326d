// "After the first call with given sizes, no call allocates": counted by replacing operator new, which is why this is a program of
// its own.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <tuple>

#include "networks/tests/pair_problem.h"
#include "nrec/kernels/dispatch.h"

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
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  if (is_counting) ++allocations;
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (size + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace nrec {
namespace {

template <typename Work>
int allocations_in(Work work) {
  allocations = 0;
  is_counting = true;
  work();
  is_counting = false;
  return allocations;
}

using Case = std::tuple<std::string, Norm>;

class Allocations : public ::testing::TestWithParam<Case> {};

TEST_P(Allocations, AStepMakesNoneAfterTheFirst) {
  const auto& [isa, norm] = GetParam();
  if (const IsaStatus status = isa_status(isa); !status.available)
    GTEST_SKIP() << status.name << ": " << status.reason;
  ThreadPool pool(3);
  const testing::Problem problem(131, 3, 5, 10);
  PairNetwork network = testing::busy_network(
      {.dim_theta = 3, .dim_x = 5, .hidden_features = 19, .num_blocks = 2, .norm = norm});
  const auto step = make_pair_step(isa, pool);
  const RowLoss loss = {
      [](const void*, std::size_t, std::span<const float> logits, std::span<float> d_logits) {
        double sum = 0.0;
        for (std::size_t i = 0; i < logits.size(); ++i) {
          sum += 0.5 * static_cast<double>(logits[i]) * static_cast<double>(logits[i]);
          d_logits[i] = logits[i];
        }
        return sum;
      },
      nullptr};
  std::vector<float> gradient(network.weights().size());
  Matrix<float> logits(131, 10);
  const auto one = [&] {
    step->loss_and_gradient(network, problem.batch, loss, gradient);
    step->logits(network, problem.batch, logits);
  };
  EXPECT_GT(allocations_in(one), 0);  // the counter counts
  EXPECT_EQ(allocations_in(one), 0);
  EXPECT_EQ(allocations_in([&] {
              for (int i = 0; i < 5; ++i) one();
            }),
            0);
}

TEST_P(Allocations, AnEvaluatorMakesNoneAfterTheFirst) {
  const auto& [isa, norm] = GetParam();
  if (const IsaStatus status = isa_status(isa); !status.available)
    GTEST_SKIP() << status.name << ": " << status.reason;
  ThreadPool pool(3);
  const testing::Problem problem(300, 3, 5, 1);
  const PairNetwork network = testing::busy_network(
      {.dim_theta = 3, .dim_x = 5, .hidden_features = 19, .num_blocks = 2, .norm = norm});
  const PairEvaluator evaluate(network, problem.x.row(0), isa, pool);
  std::vector<double> logits(300);
  Matrix<double> d_theta(300, 3);
  EXPECT_EQ(allocations_in([&] { evaluate(problem.theta, logits); }), 0);
  EXPECT_GT(allocations_in([&] { evaluate.with_gradient(problem.theta, logits, d_theta); }), 0);
  EXPECT_EQ(allocations_in([&] { evaluate.with_gradient(problem.theta, logits, d_theta); }), 0);
}

INSTANTIATE_TEST_SUITE_P(All, Allocations,
                         ::testing::Combine(::testing::Values("ref", "avx2", "avx512", "avx2_bf16", "amx"),
                                            ::testing::Values(Norm::batch, Norm::layer, Norm::none)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  std::string(norm_name(std::get<1>(instance.param)));
                         });

}  // namespace
}  // namespace nrec
