#include "nrec/diagnostics/ratio_information.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "nrec/core/error.h"
#include "nrec/core/random.h"
#include "nrec/tasks/task.h"

namespace nrec {
namespace {

TEST(LogMeanExp, NeitherOverflowsNorLosesTheError) {
  const LogMeanExp mean = log_mean_exp(std::vector<double>{1000.0, 1000.0 + std::log(3.0)});
  EXPECT_NEAR(mean.value, 1000.0 + std::log(2.0), 1e-12);
  EXPECT_NEAR(mean.relative_variance, (1.0 + 9.0) / 16.0 - 0.5, 1e-12);
  const double none = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(log_mean_exp(std::vector<double>{none, none}).value, none);
  EXPECT_NEAR(log_mean_exp(std::vector<double>{none, 0.0}).value, -std::log(2.0), 1e-12);
  EXPECT_THROW(log_mean_exp({}), ShapeError);
}

TEST(RatioInformation, FollowsItsFormulas) {
  const std::vector<double> h = {1.0, 3.0};
  const std::vector<LogMeanExp> z = {{0.0, 0.1}, {std::log(2.0), 0.3}};
  const RatioInformation found = ratio_information(h, z);
  EXPECT_NEAR(found.mean_log_ratio, 2.0, 1e-12);
  EXPECT_NEAR(found.mean_ratio, 1.5, 1e-12);
  EXPECT_NEAR(found.mean_log_z, 0.5 * std::log(2.0), 1e-12);
  EXPECT_NEAR(found.i0, 2.0 - 0.5 * std::log(2.0), 1e-12);
  EXPECT_NEAR(found.i1, 0.5 * (1.0 + 2.0), 1e-12);
  EXPECT_NEAR(found.i1_se, 0.5, 1e-12);  // values 1 and 2: sd 1/sqrt 2, over sqrt 2
  EXPECT_NEAR(found.i0_bias, 0.1, 1e-12);
  EXPECT_THROW(ratio_information(std::vector<double>{1.0}, z), ShapeError);
  EXPECT_THROW(ratio_information(std::vector<double>{1.0}, std::vector<LogMeanExp>(1)), ShapeError);
}

/// The exact log ratio of gaussian_linear, evidence N(0, 0.2), at pairs and at prior draws; c(x) is added.
RatioInformation gaussian_linear(std::size_t rows, std::size_t draws, double (*c)(double)) {
  const auto task = make_task("gaussian_linear");
  ThreadPool pool(2);
  const SimulationSet pairs = simulate_from_prior(task->prior(), task->simulator(), rows, 11, pool);
  std::vector<double> h(rows);
  std::vector<LogMeanExp> z(rows);
  pool.run(rows, [&](std::size_t i, int) {
    const auto x = pairs.x.row(i);
    double log_evidence = 0.0;
    for (const double value : x)
      log_evidence -= 0.5 * value * value / 0.2 + 0.5 * std::log(0.4 * std::numbers::pi);
    Matrix<double> theta(draws + 1, task->dim_theta());
    task->prior().sample(12, Stream::check, i * draws, theta.view().middle_rows(1, draws));
    std::copy(pairs.theta.row(i).begin(), pairs.theta.row(i).end(), theta.row(0).begin());
    std::vector<double> values(draws + 1);
    task->log_likelihood(theta, x, values);
    for (double& value : values) value += c(x[0]) - log_evidence;
    h[i] = values[0];
    z[i] = log_mean_exp(std::span(values).subspan(1));
  });
  return ratio_information(h, z);
}

TEST(RatioInformation, OfTheExactGaussianLinearRatioIsItsMutualInformation) {
  const double truth = 5.0 * std::numbers::ln2;
  const RatioInformation found = gaussian_linear(1500, 4096, [](double) { return 0.0; });
  EXPECT_LT(found.i0_se, 0.1);
  EXPECT_NEAR(found.i0 - found.i0_bias, truth, 4 * found.i0_se);
  EXPECT_NEAR(found.i1, truth, 4 * found.i1_se);
  EXPECT_LT(found.i0 - found.i0_bias, truth + 3 * found.i0_se);
  EXPECT_NEAR(found.mean_ratio, 1.0, 4 * found.mean_ratio_se);
}

TEST(RatioInformation, I0DoesNotFeelAFunctionOfXButI1Does) {
  const RatioInformation exact = gaussian_linear(500, 512, [](double) { return 0.0; });
  const RatioInformation biased = gaussian_linear(500, 512, [](double x) { return std::sin(5.0 * x) + 1.0; });
  EXPECT_NEAR(biased.i0, exact.i0, 1e-9);
  EXPECT_LT(biased.i1, exact.i1 - 4 * exact.i1_se);
}

TEST(RatioInformation, OfTheExactToyRatioIsItsMutualInformation) {
  // theta ~ U(-sqrt 3, sqrt 3), x = theta + 0.1 e; p(x) in closed form; I = 2.1782 by quadrature.
  constexpr double kEdge = std::numbers::sqrt3, kNoise = 0.1;
  const auto below = [](double t) { return 0.5 * std::erfc(-t / std::numbers::sqrt2); };
  std::vector<double> h(4000);
  std::vector<LogMeanExp> z(4000);
  for (std::size_t i = 0; i < h.size(); ++i) {
    RandomStream random(13, Stream::check, i);
    const double theta = random.uniform(-kEdge, kEdge), x = theta + kNoise * random.normal();
    const double evidence = (below((x + kEdge) / kNoise) - below((x - kEdge) / kNoise)) / (2.0 * kEdge);
    const auto log_ratio = [&](double at) {
      const double t = (x - at) / kNoise;
      return -0.5 * t * t - std::log(kNoise * std::sqrt(2.0 * std::numbers::pi)) - std::log(evidence);
    };
    h[i] = log_ratio(theta);
    std::vector<double> values(1000);
    for (double& value : values) value = log_ratio(random.uniform(-kEdge, kEdge));
    z[i] = log_mean_exp(values);
  }
  const RatioInformation found = ratio_information(h, z);
  EXPECT_LT(found.i0_se, 0.02);
  EXPECT_NEAR(found.i0 - found.i0_bias, 2.1782, 4 * found.i0_se);
  EXPECT_NEAR(found.i1, 2.1782, 4 * found.i1_se);
}

}  // namespace
}  // namespace nrec
