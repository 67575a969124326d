// Gradients of logits with respect to theta.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "networks/tests/double_network.h"
#include "networks/tests/pair_problem.h"
#include "nrec/core/error.h"
#include "nrec/kernels/dispatch.h"

namespace nrec {
namespace {

using testing::busy_network;
using testing::DoubleNetwork;
using testing::Problem;

struct Values {
  std::vector<double> logits;
  Matrix<double> d_theta;
  bool operator==(const Values&) const = default;
};

Values with_gradient(const PairEvaluator& evaluate, MatrixView<const float> theta) {
  Values v{std::vector<double>(theta.rows), Matrix<double>(theta.rows, theta.cols)};
  evaluate.with_gradient(theta, v.logits, v.d_theta);
  return v;
}

double largest_size(const Matrix<double>& m) {
  double largest = 0.0;
  for (const double value : m.values()) largest = std::max(largest, std::fabs(value));
  return largest;
}

using Case = std::tuple<std::string, Norm>;

class PairGradient : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const IsaStatus status = isa_status(isa()); !status.available)
      GTEST_SKIP() << status.name << ": " << status.reason;
  }
  std::string isa() const { return std::get<0>(GetParam()); }
  bool rounds() const { return precision_of(isa()) == "bf16"; }
  /// Widths below, at and above the padding; one theta; more thetas than a padded block; no block at all.
  std::vector<PairNetworkShape> shapes() const {
    const Norm norm = std::get<1>(GetParam());
    return {{.dim_theta = 3, .dim_x = 5, .hidden_features = 11, .num_blocks = 2, .norm = norm},
            {.dim_theta = 1, .dim_x = 1, .hidden_features = 16, .num_blocks = 1, .norm = norm},
            {.dim_theta = 17, .dim_x = 2, .hidden_features = 37, .num_blocks = 3, .norm = norm},
            {.dim_theta = 2, .dim_x = 3, .hidden_features = 5, .num_blocks = 0, .norm = norm}};
  }
};

TEST_P(PairGradient, MatchesFiniteDifferencesInDouble) {
  if (rounds()) GTEST_SKIP() << "products of " << isa() << " are rounded: see AgreesWithTheReferenceKernels";
  ThreadPool pool(2);
  for (const PairNetworkShape& shape : shapes()) {
    const Problem problem(41, shape.dim_theta, shape.dim_x, 1);
    const PairNetwork network = busy_network(shape);
    DoubleNetwork truth(network);
    truth.training = false;
    const std::span<const float> x = problem.x.row(3);
    const PairEvaluator evaluate(network, x, isa(), pool);
    const Values values = with_gradient(evaluate, problem.theta);
    const double size = largest_size(values.d_theta);
    ASSERT_GT(size, 0.05);
    const double h = 1e-6;
    std::size_t wrong_by_a_hundredth = 0;
    for (std::size_t i = 0; i < 41; ++i) {
      std::vector<double> theta(problem.theta.row(i).begin(), problem.theta.row(i).end());
      for (std::size_t k = 0; k < theta.size(); ++k) {
        const auto shifted = [&](double step) {
          std::vector<double> moved = theta;
          moved[k] += step;
          return truth.trunk({truth.input(std::span<const double>(moved), x)})[0];
        };
        const double expected = (shifted(h) - shifted(-h)) / (2 * h);
        ASSERT_NEAR(values.d_theta(i, k), expected, 2e-5 * size) << "row " << i << ", column " << k;
        wrong_by_a_hundredth += std::fabs(1.01 * values.d_theta(i, k) - expected) > 2e-5 * size;
      }
    }
    EXPECT_GT(wrong_by_a_hundredth, 20u);  // the tolerance would see an error of 1 %
  }
}

TEST_P(PairGradient, LogitsAreThoseOfTheEvaluatorAndRowsDoNotDependOnTheirBatch) {
  ThreadPool pool(2);
  for (const PairNetworkShape& shape : shapes()) {
    const Problem problem(131, shape.dim_theta, shape.dim_x, 1);
    const PairNetwork network = busy_network(shape);
    const PairEvaluator evaluate(network, problem.x.row(0), isa(), pool);
    const Values all = with_gradient(evaluate, problem.theta);
    std::vector<double> logits(131);
    evaluate(problem.theta, logits);
    EXPECT_EQ(all.logits, logits);
    for (const auto& [first, count] : {std::pair{0u, 1u}, {7u, 1u}, {17u, 2u}, {5u, 19u}, {60u, 71u}}) {
      const Values some = with_gradient(evaluate, problem.theta.view().middle_rows(first, count));
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(some.logits[i], all.logits[first + i]);
        for (std::size_t k = 0; k < shape.dim_theta; ++k)
          ASSERT_EQ(some.d_theta(i, k), all.d_theta(first + i, k)) << "row " << first + i;
      }
    }
  }
}

TEST_P(PairGradient, ManyRowsOfALargeNetworkDoNotDependOnTheirBatch) {
  // A last bit of a sum may change a rounded operand, and so all that follows: seldom enough for few or narrow rows to miss it.
  ThreadPool pool(2);
  const PairNetworkShape shape{
      .dim_theta = 5, .dim_x = 8, .hidden_features = 128, .num_blocks = 3, .norm = std::get<1>(GetParam())};
  const std::size_t rows = isa().starts_with("ref") ? 200 : 4800;
  const Problem problem(rows, 5, 8, 1);
  const PairEvaluator evaluate(busy_network(shape), problem.x.row(0), isa(), pool);
  std::vector<double> logits(rows);
  evaluate(problem.theta, logits);
  EXPECT_EQ(with_gradient(evaluate, problem.theta).logits, logits);
}

TEST_P(PairGradient, SameBitsForAnyNumberOfThreads) {
  const PairNetworkShape shape = shapes()[0];
  const Problem problem(131, shape.dim_theta, shape.dim_x, 1);
  const PairNetwork network = busy_network(shape);
  Values first;
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    const PairEvaluator evaluate(network, problem.x.row(0), isa(), pool);
    const Values values = with_gradient(evaluate, problem.theta);
    if (threads == 1) first = values;
    EXPECT_TRUE(first == values) << threads << " threads";
    EXPECT_TRUE(first == with_gradient(evaluate, problem.theta))
        << "the second call, " << threads << " threads";
  }
}

TEST_P(PairGradient, AgreesWithTheReferenceKernels) {
  ThreadPool pool(1);
  for (const PairNetworkShape& shape : shapes()) {
    const Problem problem(50, shape.dim_theta, shape.dim_x, 1);
    const PairNetwork network = busy_network(shape);
    const Values here = with_gradient(PairEvaluator(network, problem.x.row(0), isa(), pool), problem.theta);
    const std::string truth = rounds() ? "ref_bf16" : "ref";
    const Values ref = with_gradient(PairEvaluator(network, problem.x.row(0), truth, pool), problem.theta);
    const double size = largest_size(ref.d_theta);
    // Sums in another order change rounded operands in their last of eight digits, and masks of relu.
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < 50 * shape.dim_theta; ++i) {
      const double difference = std::fabs(here.d_theta.values()[i] - ref.d_theta.values()[i]);
      ASSERT_LT(difference, (rounds() ? 2e-2 : 2e-6) * size);
      wrong += difference > 2e-6 * size;
    }
    EXPECT_LE(wrong, 50 * shape.dim_theta / 5);
  }
}

TEST_P(PairGradient, SeveralRowsOfXAdd) {
  ThreadPool pool(2);
  for (const PairNetworkShape& shape : shapes()) {
    const Problem problem(41, shape.dim_theta, shape.dim_x, 1);
    const PairNetwork network = busy_network(shape);
    const PairEvaluator evaluate(network, problem.x.view().middle_rows(3, 5), isa(), pool);
    EXPECT_EQ(evaluate.num_rows(), 5u);
    Values expected{std::vector<double>(41), Matrix<double>(41, shape.dim_theta)};
    for (std::size_t row = 3; row < 8; ++row) {
      const Values one =
          with_gradient(PairEvaluator(network, problem.x.row(row), isa(), pool), problem.theta);
      for (std::size_t i = 0; i < 41; ++i) expected.logits[i] += one.logits[i];
      for (std::size_t i = 0; i < expected.d_theta.values().size(); ++i)
        expected.d_theta.values()[i] += one.d_theta.values()[i];
    }
    EXPECT_TRUE(with_gradient(evaluate, problem.theta) == expected);
    std::vector<double> sums(41);
    evaluate(problem.theta, sums);
    EXPECT_EQ(sums, expected.logits);
  }
}

TEST_P(PairGradient, RefusesXOfAnotherShape) {
  ThreadPool pool(1);
  const PairNetwork network = busy_network(shapes()[0]);
  const auto refusal = [&](const Matrix<float>& x) {
    try {
      PairEvaluator(network, x, isa(), pool);
    } catch (const ShapeError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(refusal(Matrix<float>(2, 4)),
            "pair evaluator: x is [2, 4]; the network wants at least one row of 5 numbers");
  EXPECT_EQ(refusal(Matrix<float>(0, 5)),
            "pair evaluator: x is [0, 5]; the network wants at least one row of 5 numbers");
}

TEST_P(PairGradient, RefusesShapesThatDoNotFit) {
  ThreadPool pool(1);
  const Problem problem(4, 3, 5, 1);
  const PairEvaluator evaluate(busy_network(shapes()[0]), problem.x.row(0), isa(), pool);
  std::vector<double> logits(4);
  Matrix<double> narrow(4, 2);
  const Matrix<float> too_few(4, 2);
  try {
    evaluate.with_gradient(problem.theta, logits, narrow);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "pair evaluator: d_theta is [4, 2]; it must have the shape of theta, [4, 3]");
  }
  Matrix<double> wide(4, 3);
  EXPECT_THROW(evaluate.with_gradient(too_few, logits, wide), ShapeError);
  EXPECT_THROW(evaluate.with_gradient(problem.theta, std::span(logits).first(3), wide), ShapeError);
}

INSTANTIATE_TEST_SUITE_P(All, PairGradient,
                         ::testing::Combine(::testing::Values("ref", "avx2", "avx512", "amx", "avx2_bf16"),
                                            ::testing::Values(Norm::batch, Norm::layer, Norm::none)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  std::string(norm_name(std::get<1>(instance.param)));
                         });

}  // namespace
}  // namespace nrec
