#include "nrec/networks/pair_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "networks/pair_engine.h"
#include "networks/tests/double_network.h"
#include "networks/tests/pair_problem.h"
#include "nrec/core/error.h"
#include "nrec/core/random.h"
#include "nrec/kernels/dispatch.h"
#include "nrec/losses/contrastive_loss.h"

namespace nrec {
namespace {

using testing::busy_network;
using testing::Problem;

RowLoss row_loss(const ContrastiveLoss& loss) {
  return {[](const void* context, std::size_t, std::span<const float> logits, std::span<float> d) {
            return static_cast<const ContrastiveLoss*>(context)->row(logits, d);
          },
          &loss};
}

using Case = std::tuple<std::string, Norm>;

class PairStep : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const IsaStatus status = isa_status(isa()); !status.available)
      GTEST_SKIP() << status.name << ": " << status.reason;
  }
  std::string isa() const { return std::get<0>(GetParam()); }
  PairNetworkShape shape() const {
    return {
        .dim_theta = 3, .dim_x = 5, .hidden_features = 11, .num_blocks = 2, .norm = std::get<1>(GetParam())};
  }
};

/// The step of kernels `isa` on a network of that shape against finite differences in double precision, for every `stride`-th weight.
void expect_true_gradient(const std::string& isa, const PairNetworkShape& shape, const Problem& problem,
                          std::size_t stride = 1) {
  const double gamma = 2.0;
  const ContrastiveLoss loss(LossKind::nre_c, problem.batch.candidates.cols - 1, gamma, true);
  ThreadPool pool(2);
  const auto step = make_pair_step(isa, pool);
  PairNetwork network = busy_network(shape);
  testing::DoubleNetwork truth(network);
  const double expected_loss = truth.loss(problem.batch, gamma);
  std::vector<float> gradient(network.weights().size());
  PairNetwork trained = network;
  EXPECT_NEAR(step->loss_and_gradient(trained, problem.batch, row_loss(loss), gradient), expected_loss,
              2e-6 * std::max(1.0, expected_loss));

  double largest = 0;
  for (const float g : gradient) largest = std::max(largest, static_cast<double>(std::fabs(g)));
  ASSERT_GT(largest, 1e-2);
  std::size_t checked = 0;
  for (std::size_t i = 0; i < gradient.size(); i += stride) {
    if (network.weights()[i] == 0.0f && gradient[i] == 0.0f) continue;  // padding
    const double saved = truth.w[i], h = 1e-6;
    truth.w[i] = saved + h;
    const double up = truth.loss(problem.batch, gamma);
    truth.w[i] = saved - h;
    const double down = truth.loss(problem.batch, gamma);
    truth.w[i] = saved;
    ASSERT_NEAR(gradient[i], (up - down) / (2 * h), 2e-5 * std::max(1.0, largest)) << "weight " << i;
    ++checked;
  }
  EXPECT_GE((checked + 2 * shape.hidden_features) * stride, network.num_parameters());
}

TEST_P(PairStep, GradientMatchesFiniteDifferencesInDouble) {
  for (const std::size_t num_blocks : {0u, 1u, 2u, 3u}) {
    PairNetworkShape with_blocks = shape();
    with_blocks.num_blocks = num_blocks;
    SCOPED_TRACE(std::to_string(num_blocks) + " blocks");
    expect_true_gradient(isa(), with_blocks, Problem(23, 3, 5, 7));
  }
}

/// The last two or five features share registers in products.
TEST_P(PairStep, GradientOfWidthsBehindWholePanelsMatchesFiniteDifferencesInDouble) {
  for (const std::size_t features : {5u, 18u, 21u, 50u}) {
    PairNetworkShape of_width = shape();
    of_width.hidden_features = features;
    SCOPED_TRACE(std::to_string(features) + " features");
    expect_true_gradient(isa(), of_width, Problem(23, 3, 5, 7), 1 + features / 3);
  }
}

/// Exact batch norm goes through such rows in pieces.
TEST_P(PairStep, GradientOfRowsOfManyCandidatesMatchesFiniteDifferencesInDouble) {
  for (const std::size_t num_blocks : {0u, 2u}) {
    PairNetworkShape with_blocks = shape();
    with_blocks.num_blocks = num_blocks;
    SCOPED_TRACE(std::to_string(num_blocks) + " blocks");
    for (const std::size_t columns : {2 * PairEngine::kGroupPairs + 1, 2 * PairEngine::kPiecePairs + 1})
      expect_true_gradient(isa(), with_blocks, Problem(9, 3, 5, columns), 14);
  }
}

class PairStepOfAnyPrecision : public PairStep {};
class PairStepOfSeparateRows : public PairStep {};  // batch norm is one of all rows

TEST_P(PairStepOfAnyPrecision, PaddingStaysZero) {
  const Problem problem(23, 3, 5, 7);
  const ContrastiveLoss loss(LossKind::nre_c, 6, 1.0, true);
  ThreadPool pool(1);
  const auto step = make_pair_step(isa(), pool);
  for (const std::size_t features : {11u, 18u, 21u}) {
    PairNetworkShape of_width = shape();
    of_width.hidden_features = features;
    PairNetwork network = busy_network(of_width);
    std::vector<float> gradient(network.weights().size());
    step->loss_and_gradient(network, problem.batch, row_loss(loss), gradient);
    PairNetwork only_real(of_width);
    std::copy(gradient.begin(), gradient.end(), only_real.weights().begin());
    PairNetwork repadded(of_width);
    auto tensors = only_real.tensors();
    repadded.set_tensors(tensors);  // copies the real entries only
    for (std::size_t i = 0; i < gradient.size(); ++i) ASSERT_EQ(gradient[i], repadded.weights()[i]) << i;
  }
}

TEST_P(PairStep, EvaluationModeMatchesTheDoubleNetwork) {
  const Problem problem(30, 3, 5, 4);
  ThreadPool pool(2);
  const auto step = make_pair_step(isa(), pool);
  const PairNetwork network = busy_network(shape());
  testing::DoubleNetwork truth(network);
  truth.training = false;
  const std::vector<double> expected = truth.logits(problem.batch);
  Matrix<float> logits(30, 4);
  step->logits(network, problem.batch, logits);
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(logits.values()[i], expected[i], 2e-5 * (1 + std::fabs(expected[i])));
  // The evaluator of one x agrees with the step.
  const PairEvaluator evaluate(network, problem.x.row(7), isa(), pool);
  std::vector<double> values(30);
  evaluate(problem.theta, values);
  for (std::size_t c = 0; c < 4; ++c)
    EXPECT_NEAR(values[problem.candidates(7, c)], logits(7, c), 1e-5 * (1 + std::fabs(logits(7, c))));
}

void expect_same_bits_for_any_number_of_threads(const std::string& isa, const PairNetworkShape& shape,
                                                const Problem& problem) {
  const ContrastiveLoss loss(LossKind::nre_c, problem.batch.candidates.cols - 1, 1.0, true);
  std::vector<float> first;
  double first_loss = 0;
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    const auto step = make_pair_step(isa, pool);
    PairNetwork network = busy_network(shape);
    std::vector<float> gradient(network.weights().size());
    double value = 0;
    for (int repeat = 0; repeat < 2; ++repeat)
      value = step->loss_and_gradient(network, problem.batch, row_loss(loss), gradient);
    gradient.insert(gradient.end(), network.statistics().begin(), network.statistics().end());
    if (first.empty()) {
      first = gradient;
      first_loss = value;
    }
    EXPECT_EQ(first, gradient) << threads;
    EXPECT_EQ(first_loss, value);
  }
}

TEST_P(PairStepOfAnyPrecision, SameBitsForAnyNumberOfThreads) {
  expect_same_bits_for_any_number_of_threads(isa(), shape(), Problem(131, 3, 5, 20));
  for (const std::size_t columns : {2 * PairEngine::kGroupPairs, 2 * PairEngine::kGroupPairs + 1,
                                    2 * PairEngine::kPiecePairs, 2 * PairEngine::kPiecePairs + 1})
    expect_same_bits_for_any_number_of_threads(isa(), shape(), Problem(19, 3, 5, columns));
}

/// The mean of rows does not care which rows are computed together. Rows in a number that is a power of two: their mean rounds as they do.
TEST_P(PairStepOfSeparateRows, IsTheMeanOfStepsOfSingleRows) {
  ThreadPool pool(2);
  constexpr std::size_t kRows = 32;
  for (const auto& [hidden, blocks, columns] : {std::array<std::size_t, 3>{72, 0, 20},
                                                {72, 1, 20},
                                                {72, 3, 20},
                                                {11, 2, 2},
                                                {50, 2, 41},
                                                {50, 1, 100}}) {
    SCOPED_TRACE(std::to_string(hidden) + " x " + std::to_string(blocks) + ", " + std::to_string(columns));
    PairNetworkShape size = shape();
    size.hidden_features = hidden;
    size.num_blocks = blocks;
    const Problem problem(kRows, 3, 5, columns);
    const ContrastiveLoss loss(LossKind::nre_c, columns - 1, 1.0, true);
    PairNetwork network = busy_network(size), sums(size), together(size);
    std::ranges::fill(sums.weights(), 0.0f);  // gains are 1
    const auto step = make_pair_step(isa(), pool);
    std::vector<float> gradient(network.weights().size());
    double mean = 0;
    for (std::size_t row = 0; row < kRows; ++row) {
      const PairBatch one = {problem.theta, problem.x.view().middle_rows(row, 1),
                             problem.candidates.view().middle_rows(row, 1)};
      mean += step->loss_and_gradient(network, one, row_loss(loss), gradient) / kRows;
      for (std::size_t i = 0; i < gradient.size(); ++i) sums.weights()[i] += gradient[i] / kRows;
    }
    EXPECT_NEAR(step->loss_and_gradient(network, problem.batch, row_loss(loss), together.weights()), mean,
                1e-6 * std::fabs(mean));
    const auto expected = sums.tensors(), actual = together.tensors();
    for (std::size_t t = 0; t < expected.size(); ++t) {
      double largest = 0;
      for (const float v : expected[t].values) largest = std::max(largest, static_cast<double>(std::fabs(v)));
      EXPECT_GT(largest, 1e-4) << expected[t].name;
      for (std::size_t i = 0; i < expected[t].values.size(); ++i)
        ASSERT_NEAR(actual[t].values[i], expected[t].values[i], 2e-5 * largest) << expected[t].name;
    }
  }
}

TEST_P(PairStepOfAnyPrecision, DoesNotRememberOtherSizes) {
  ThreadPool pool(2);
  const auto used = make_pair_step(isa(), pool);
  const auto run = [&](PairNetworkStep& step, std::size_t hidden, std::size_t blocks, Norm norm,
                       std::size_t rows, std::size_t columns) {
    PairNetwork network = busy_network(
        {.dim_theta = 3, .dim_x = 5, .hidden_features = hidden, .num_blocks = blocks, .norm = norm});
    const Problem problem(rows, 3, 5, columns);
    const ContrastiveLoss loss(LossKind::nre_c, columns - 1, 1.0, true);
    std::vector<float> numbers(network.weights().size());
    step.loss_and_gradient(network, problem.batch, row_loss(loss), numbers);
    Matrix<float> logits(rows, columns);
    step.logits(network, problem.batch, logits);
    numbers.insert(numbers.end(), logits.values().begin(), logits.values().end());
    return numbers;
  };
  for (const Norm before : {Norm::batch, Norm::layer, Norm::none}) {
    run(*used, 50, 3, before, 17, 265);
    run(*used, 11, 1, before, 5, 2);
    const auto fresh = make_pair_step(isa(), pool);
    EXPECT_EQ(run(*used, 20, 2, shape().norm, 61, 20), run(*fresh, 20, 2, shape().norm, 61, 20));
  }
}

TEST_P(PairStepOfAnyPrecision, GoesOnAfterALossThatThrew) {
  const Problem problem(40, 3, 5, 7);
  const ContrastiveLoss loss(LossKind::nre_c, 6, 1.0, true);
  const RowLoss throwing{
      [](const void*, std::size_t row, std::span<const float>, std::span<float>) -> double {
        if (row == 20) throw DomainError("row 20");
        return 0.0;
      },
      nullptr};
  for (const std::size_t num_blocks : {0u, 2u}) {
    PairNetworkShape with_blocks = shape();
    with_blocks.num_blocks = num_blocks;
    ThreadPool pool(1);
    const auto step = make_pair_step(isa(), pool);
    const PairNetwork fresh = busy_network(with_blocks);
    std::vector<float> gradient(fresh.weights().size()), expected = gradient;
    PairNetwork network = fresh;
    make_pair_step(isa(), pool)->loss_and_gradient(network, problem.batch, row_loss(loss), expected);
    for (int time = 0; time < 6; ++time) {
      network = fresh;
      EXPECT_THROW(step->loss_and_gradient(network, problem.batch, throwing, gradient), DomainError);
    }
    network = fresh;
    step->loss_and_gradient(network, problem.batch, row_loss(loss), gradient);
    EXPECT_EQ(gradient, expected);
  }
}

TEST_P(PairStepOfAnyPrecision, RefusesShapesThatDoNotFit) {
  ThreadPool pool(1);
  const auto step = make_pair_step(isa(), pool);
  const PairNetwork network = busy_network(shape());
  Problem problem(5, 3, 5, 2);
  Matrix<float> logits(5, 2);
  problem.candidates(2, 1) = 5;
  try {
    step->logits(network, problem.batch, logits);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_EQ(std::string(error.what()), "pair network step: candidates points to theta row 5 of 5");
  }
  const Problem narrow(5, 2, 5, 2);
  EXPECT_THROW(step->logits(network, narrow.batch, logits), ShapeError);
}

class Bf16PairStep : public PairStep {};

double norm2(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

TEST_P(Bf16PairStep, IsThatOfRoundedOperands) {
  for (const auto& [hidden, rows, columns] : {std::array{11, 131, 20}, {50, 131, 20}, {50, 17, 265}}) {
    PairNetworkShape size = shape();
    size.hidden_features = static_cast<std::size_t>(hidden);
    const Problem problem(static_cast<std::size_t>(rows), 3, 5, static_cast<std::size_t>(columns));
    const ContrastiveLoss loss(LossKind::nre_c, static_cast<std::size_t>(columns - 1), 1.0, true);
    ThreadPool pool(2);
    std::vector<float> gradients[3];
    double losses[3];
    const std::string isas[3] = {isa(), "ref_bf16", "ref"};
    for (const int i : {0, 1, 2}) {
      PairNetwork network = busy_network(size);
      gradients[i].resize(network.weights().size());
      losses[i] = make_pair_step(isas[i], pool)
                      ->loss_and_gradient(network, problem.batch, row_loss(loss), gradients[i]);
    }
    EXPECT_NEAR(losses[0], losses[1], 1e-4 * losses[1]);
    std::vector<float> from_rounded = gradients[0], from_float = gradients[0];
    for (std::size_t i = 0; i < from_rounded.size(); ++i) {
      from_rounded[i] -= gradients[1][i];
      from_float[i] -= gradients[2][i];
    }
    EXPECT_LT(norm2(from_rounded), 1e-3 * norm2(gradients[1]));
    // bf16 operands cost some per cent of a gradient, and are really in use.
    EXPECT_LT(norm2(from_float), 0.1 * norm2(gradients[2]));
    EXPECT_GT(norm2(from_float), 1e-4 * norm2(gradients[2]));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Bf16PairStep,
                         ::testing::Combine(::testing::Values("avx2_bf16", "amx"),
                                            ::testing::Values(Norm::batch, Norm::layer, Norm::none)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  std::string(norm_name(std::get<1>(instance.param)));
                         });

INSTANTIATE_TEST_SUITE_P(All, PairStepOfAnyPrecision,
                         ::testing::Combine(::testing::Values("ref", "avx2", "avx512", "ref_bf16",
                                                              "avx2_bf16", "amx"),
                                            ::testing::Values(Norm::batch, Norm::layer, Norm::none)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  std::string(norm_name(std::get<1>(instance.param)));
                         });

INSTANTIATE_TEST_SUITE_P(All, PairStepOfSeparateRows,
                         ::testing::Combine(::testing::Values("ref", "avx2", "avx512", "ref_bf16",
                                                              "avx2_bf16", "amx"),
                                            ::testing::Values(Norm::layer, Norm::none)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  std::string(norm_name(std::get<1>(instance.param)));
                         });

INSTANTIATE_TEST_SUITE_P(All, PairStep,
                         ::testing::Combine(::testing::Values("ref", "avx2", "avx512"),
                                            ::testing::Values(Norm::batch, Norm::layer, Norm::none)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  std::string(norm_name(std::get<1>(instance.param)));
                         });

TEST(PairStepBatchNorm, RunningStatisticsFollowTheBatch) {
  const PairNetworkShape shape = {
      .dim_theta = 3, .dim_x = 5, .hidden_features = 11, .num_blocks = 1, .norm = Norm::batch};
  const Problem problem(23, 3, 5, 7);
  const ContrastiveLoss loss(LossKind::nre_c, 6, 1.0, true);
  ThreadPool pool(1);
  const auto step = make_pair_step("ref", pool);
  PairNetwork network = busy_network(shape);
  std::vector<float> gradient(network.weights().size());
  const std::vector<float> before(network.statistics().begin(), network.statistics().end());
  step->loss_and_gradient(network, problem.batch, row_loss(loss), gradient);
  // Column 0 of the input layer's output, by hand.
  std::vector<double> z;
  for (std::size_t b = 0; b < 23; ++b) {
    for (const std::uint32_t t : problem.candidates.row(b)) {
      double value = network.weights()[network.bias_in()];
      for (std::size_t k = 0; k < 3; ++k)
        value += problem.theta(t, k) * network.weights()[network.theta_in() + k * network.width()];
      for (std::size_t k = 0; k < 5; ++k)
        value += problem.x(b, k) * network.weights()[network.x_in() + k * network.width()];
      z.push_back(value);
    }
  }
  double mean = 0, variance = 0;
  for (const double v : z) mean += v / static_cast<double>(z.size());
  for (const double v : z) variance += (v - mean) * (v - mean) / static_cast<double>(z.size() - 1);
  EXPECT_NEAR(network.statistics()[network.running_mean(0, 0)],
              0.9 * before[network.running_mean(0, 0)] + 0.1 * mean, 1e-5);
  EXPECT_NEAR(network.statistics()[network.running_variance(0, 0)],
              0.9 * before[network.running_variance(0, 0)] + 0.1 * variance, 1e-5);
}

}  // namespace
}  // namespace nrec
