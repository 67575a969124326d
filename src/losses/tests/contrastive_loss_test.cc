#include "nrec/losses/contrastive_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "nrec/core/error.h"
#include "nrec/core/random.h"

namespace nrec {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Matrix<double> random_logits(std::size_t rows, std::size_t cols, std::uint64_t row, double scale = 1.0) {
  RandomStream random(5, Stream::check, row);
  Matrix<double> logits(rows, cols);
  for (double& h : logits.values()) h = scale * random.normal();
  return logits;
}

double value_of(const Matrix<double>& m, const Matrix<double>& j, double gamma) {
  return nre_c_loss(m, j, gamma, {}, {});
}

TEST(NreCLoss, ConstantNetworkGivesTheClosedForm) {
  // log(1+g) + g/(1+g) log(K/g)
  const double table[][3] = {{1, 1, 0.69314718},    {5, 1, 1.49786614}, {5, 10, 1.76776147},
                             {10, 0.1, 0.51396201}, {9, 1, 1.79176},    {99, 1, 2.99071},
                             {9, 0.001, 0.01010},   {99, 100, 4.60517}};
  for (const auto& [k, gamma, expected] : table) {
    const Matrix<double> zero(3, static_cast<std::size_t>(k));
    EXPECT_NEAR(value_of(zero, zero, gamma), expected,
                expected == 0.01010 || k == 99 || (k == 9 && gamma == 1) ? 6e-6 : 1e-8)
        << k << " " << gamma;
    EXPECT_NEAR(value_of(zero, zero, gamma), std::log1p(gamma) + gamma / (1 + gamma) * std::log(k / gamma),
                1e-12);
  }
}

TEST(NreCLoss, WithOneCandidateAndEvenOddsIsTheBinaryLoss) {
  const auto m = random_logits(50, 1, 1, 3), j = random_logits(50, 1, 2, 3);
  EXPECT_NEAR(value_of(m, j, 1.0), nre_a_loss(m.values(), j.values(), {}, {}), 1e-14);
}

TEST(NreCLoss, TendsToTheMultiClassLossAtLargeGamma) {
  const auto m = random_logits(20, 7, 1), j = random_logits(20, 7, 2);
  EXPECT_NEAR(value_of(m, j, 1e8), nre_b_loss(j, {}), 1e-6);
  EXPECT_GT(std::fabs(value_of(m, j, 10.0) - nre_b_loss(j, {})), 1e-3);
}

TEST(NreCLoss, ClassProbabilitiesSumToOne) {
  const auto h = random_logits(1, 9, 3, 5);
  for (const double gamma : {0.001, 1.0, 100.0}) {
    const auto q = nre_c_class_probabilities(h.values(), gamma);
    EXPECT_EQ(q.size(), 10u);
    EXPECT_NEAR(std::accumulate(q.begin(), q.end(), 0.0), 1.0, 1e-13);
  }
}

TEST(NreCLoss, SeesAFunctionOfXThatTheMultiClassLossCannotSee) {
  auto m = random_logits(10, 5, 1), j = random_logits(10, 5, 2);
  const double b_before = nre_b_loss(j, {});
  const double c_before = value_of(m, j, 1.0);
  for (std::size_t b = 0; b < 10; ++b) {
    for (std::size_t k = 0; k < 5; ++k) {
      m(b, k) += std::sin(static_cast<double>(b)) + 1;
      j(b, k) += std::sin(static_cast<double>(b)) + 1;
    }
  }
  EXPECT_NEAR(nre_b_loss(j, {}), b_before, 1e-13);
  EXPECT_GT(std::fabs(value_of(m, j, 1.0) - c_before), 1e-2);
}

/// Largest difference between `gradient` and central differences of `loss` at the entries of `logits`.
double gradient_error(Matrix<double>& logits, const Matrix<double>& gradient,
                      const std::function<double()>& loss) {
  double worst = 0;
  const double step = 1e-5;
  for (std::size_t i = 0; i < logits.values().size(); ++i) {
    const double saved = logits.values()[i];
    logits.values()[i] = saved + step;
    const double up = loss();
    logits.values()[i] = saved - step;
    const double down = loss();
    logits.values()[i] = saved;
    worst = std::max(worst, std::fabs((up - down) / (2 * step) - gradient.values()[i]));
  }
  return worst;
}

TEST(NreCLoss, GradientMatchesFiniteDifferences) {
  for (const double gamma : {0.01, 1.0, 50.0}) {
    for (const std::size_t k : {1u, 4u}) {
      auto m = random_logits(3, k, 1, 2), j = random_logits(3, k, 2, 2);
      Matrix<double> dm(3, k), dj(3, k);
      nre_c_loss(m, j, gamma, dm, dj);
      EXPECT_LT(gradient_error(m, dm, [&] { return value_of(m, j, gamma); }), 1e-9);
      EXPECT_LT(gradient_error(j, dj, [&] { return value_of(m, j, gamma); }), 1e-9);
    }
  }
}

TEST(NreBLoss, GradientMatchesFiniteDifferences) {
  auto j = random_logits(3, 6, 2, 2);
  Matrix<double> dj(3, 6);
  nre_b_loss(j, dj);
  EXPECT_LT(gradient_error(j, dj, [&] { return nre_b_loss(j, {}); }), 1e-9);
}

TEST(NreALoss, GradientMatchesFiniteDifferences) {
  auto m = random_logits(8, 1, 1, 2), j = random_logits(8, 1, 2, 2);
  Matrix<double> dm(8, 1), dj(8, 1);
  nre_a_loss(m.values(), j.values(), dm.values(), dj.values());
  EXPECT_LT(gradient_error(m, dm, [&] { return nre_a_loss(m.values(), j.values(), {}, {}); }), 1e-9);
  EXPECT_LT(gradient_error(j, dj, [&] { return nre_a_loss(m.values(), j.values(), {}, {}); }), 1e-9);
}

TEST(ContrastiveLoss, RowEqualsTheMatrixFunctions) {
  for (const std::size_t k : {1u, 2u, 5u}) {
    for (const bool shared : {true, false}) {
      // The own logit, and the last one, which only one of both terms sees, as others or far above them.
      for (const auto& [own, last] :
           {std::pair{0.0f, 0.0f}, {900.0f, 0.0f}, {0.0f, 900.0f}, {-900.0f, 0.0f}}) {
        const ContrastiveLoss loss(LossKind::nre_c, k, 2.0, shared);
        ASSERT_EQ(loss.num_columns(), shared ? k + 1 : 2 * k);
        std::vector<float> row(loss.num_columns()), gradient(loss.num_columns());
        RandomStream random(1, Stream::check, 9);
        for (float& h : row) h = static_cast<float>(random.normal());
        row.front() += own;
        row.back() += last;
        Matrix<double> m(1, k), j(1, k), dm(1, k), dj(1, k);
        for (std::size_t i = 0; i < k; ++i) {
          j(0, i) = row[i];
          m(0, i) = row[(shared ? 1 : k) + i];
        }
        const double expected = nre_c_loss(m, j, 2.0, dm, dj);
        EXPECT_NEAR(loss.row(row, gradient), expected, 1e-12 * std::max(1.0, std::fabs(expected)));
        EXPECT_NEAR(loss.row(row, {}), expected, 1e-12 * std::max(1.0, std::fabs(expected)));
        std::vector<double> sum(row.size());
        for (std::size_t i = 0; i < k; ++i) {
          sum[i] += dj(0, i);
          sum[(shared ? 1 : k) + i] += dm(0, i);
        }
        for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(gradient[i], sum[i], 1e-7);
      }
    }
  }
}

TEST(ContrastiveLoss, KnowsItsCornerCases) {
  const ContrastiveLoss b(LossKind::nre_c, 4, kInf, true);
  EXPECT_EQ(b.kind(), LossKind::nre_b);
  EXPECT_EQ(b.num_columns(), 4u);
  const ContrastiveLoss a(LossKind::nre_a, 77, 5.0, true);
  EXPECT_EQ(a.num_columns(), 2u);
  std::vector<float> zero(2), gradient(2);
  EXPECT_NEAR(a.row(zero, gradient), std::log(2.0), 1e-12);
}

TEST(ContrastiveLoss, StaysFiniteAtHugeLogits) {
  const ContrastiveLoss loss(LossKind::nre_c, 3, 1.0, true);
  for (const float h : {1e4f, -1e4f}) {
    std::vector<float> row = {h, -h, h, -h}, gradient(4);
    EXPECT_TRUE(std::isfinite(loss.row(row, gradient)));
    for (const float g : gradient) EXPECT_TRUE(std::isfinite(g));
  }
}

TEST(ContrastiveLoss, RefusesImpossibleSettings) {
  EXPECT_THROW(ContrastiveLoss(LossKind::nre_c, 5, 0.0, true), DomainError);
  EXPECT_THROW(ContrastiveLoss(LossKind::nre_c, 5, -1.0, true), DomainError);
  EXPECT_THROW(ContrastiveLoss(LossKind::nre_c, 5, std::nan(""), true), DomainError);
  EXPECT_THROW(ContrastiveLoss(LossKind::nre_c, 0, 1.0, true), DomainError);
  EXPECT_THROW(loss_kind("nre-d"), ConfigError);
  try {
    ContrastiveLoss(LossKind::nre_c, 1, kInf, true);
    FAIL() << "no error";
  } catch (const DomainError& error) {
    EXPECT_EQ(std::string(error.what()),
              "loss: num_classes = 1 must be at least 2 for nre-b (with one candidate its loss is zero for "
              "every network)");
  }
}

}  // namespace
}  // namespace nrec
