// Simulators against what is known of their laws in closed form.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "mean_check.h"
#include "nrec/core/error.h"
#include "nrec/tasks/task.h"
#include "tasks/binomial.h"
#include "tasks/frozen_inputs.h"
#include "tasks/population_curves.h"
#include "tasks/truncated_normal.h"

namespace nrec {
namespace {

constexpr double kStandardErrors = 4.0;

// Simulations at one theta.
Matrix<double> simulate_at(const Task& task, const std::vector<double>& theta, std::size_t rows) {
  Matrix<double> x(rows, task.dim_x());
  for (std::size_t i = 0; i < rows; ++i) {
    RandomStream random(8, Stream::simulator, i);
    task.simulator().simulate(theta, random, x.row(i));
  }
  return x;
}

// Mean and variance of `value(row)` are `mean` and `variance`, within 4 standard errors each; and the mean is not one
// `contrast` away, so that a test with too few rows to say anything fails.
template <class Value>
void expect_moments(const Matrix<double>& x, Value value, double mean, double variance, double contrast) {
  MeanCheck first;
  MeanCheck second;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    const double v = value(x.row(i));
    first.add(v);
    second.add((v - mean) * (v - mean));
  }
  EXPECT_LT(std::abs(first.z(mean)), kStandardErrors);
  EXPECT_LT(std::abs(second.z(variance)), kStandardErrors);
  EXPECT_GT(std::abs(first.z(mean + contrast)), kStandardErrors);
  EXPECT_GT(std::abs(second.z(1.2 * variance)), kStandardErrors);
}

TEST(SimulatorLaw, GaussianTasksAddNoiseOfVarianceOneTenth) {
  const std::vector<double> theta = {-0.9, -0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9};
  for (const char* name : {"gaussian_linear", "gaussian_linear_uniform"}) {
    const Matrix<double> x = simulate_at(*make_task(name), theta, 20000);
    for (std::size_t d = 0; d < 10; ++d)
      expect_moments(
          x, [d](auto row) { return row[d]; }, theta[d], 0.1, 0.02);
  }
}

TEST(SimulatorLaw, SlcpDrawsFourPointsWithFourthPowersOfThetaAsVariances) {
  const std::vector<double> theta = {0.7, -2.9, -1.0, 0.9, 0.6};
  const double sd2 = 0.81;
  const double rho = std::tanh(0.6);
  const Matrix<double> x = simulate_at(*make_task("slcp"), theta, 20000);
  for (std::size_t point = 0; point < 4; ++point) {
    expect_moments(
        x, [&](auto row) { return row[2 * point]; }, 0.7, 1.0 + 1e-6, 0.1);
    expect_moments(
        x, [&](auto row) { return row[2 * point + 1]; }, -2.9, sd2 * sd2 + 1e-6, 0.1);
    MeanCheck cross;
    for (std::size_t i = 0; i < x.rows(); ++i)
      cross.add((x(i, 2 * point) - 0.7) * (x(i, 2 * point + 1) + 2.9));
    EXPECT_LT(std::abs(cross.z(rho * sd2)), kStandardErrors);
  }
  MeanCheck between;
  for (std::size_t i = 0; i < x.rows(); ++i) between.add((x(i, 0) - 0.7) * (x(i, 2) - 0.7));
  EXPECT_LT(std::abs(between.z(0.0)), kStandardErrors) << "points are independent";
}

TEST(SimulatorLaw, DistractorsHideTheSignalInTheirPlacesAndHaveHeavyTails) {
  const std::vector<double> theta = {0.7, -2.9, -1.0, 0.9, 0.6};
  const std::size_t rows = 3000;
  const Matrix<double> signal = simulate_at(*make_task("slcp"), theta, rows);
  const Matrix<double> x = simulate_at(*make_task("slcp_distractors"), theta, rows);
  const std::vector<std::size_t> columns = {22, 33, 23, 67, 42, 21, 16, 90};
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < 8; ++j) ASSERT_EQ(x(i, columns[j]), signal(i, j));
  }
  // First noise number: a mixture of 20 t distributions with 2 degrees of freedom; its distribution function is known:
  // P(t <= s) = 1/2 + s / (2 sqrt(2 + s^2)).
  const tasks::DistractorNoise& noise = tasks::distractor_noise();
  std::size_t column = 0;
  while (noise.permutation[column] != tasks::kSlcpSignal) ++column;
  for (const double at : {-40.0, -10.0, 0.0, 15.0, 60.0}) {
    double expected = 0.0;
    for (std::size_t c = 0; c < tasks::kNoiseComponents; ++c) {
      const double s = (at - noise.location(c, 0)) / std::abs(noise.factor(c, 0));
      expected += (0.5 + 0.5 * s / std::sqrt(2.0 + s * s)) / static_cast<double>(tasks::kNoiseComponents);
    }
    MeanCheck below;
    for (std::size_t i = 0; i < rows; ++i) below.add(x(i, column) <= at ? 1.0 : 0.0);
    EXPECT_LT(std::abs(below.z(expected)), kStandardErrors) << "at " << at;
  }
}

TEST(SimulatorLaw, SpikesFollowTheSigmoidAndTheSummaryIsThatOfTheTrain) {
  const std::vector<double> theta = {0.4, 0.8, 1.1, 0.7, 0.2, -0.4, -0.6, -0.5, -0.3, 0.1};
  const tasks::GlmDesign& glm = tasks::glm_design();
  const Matrix<double> y = simulate_at(*make_task("bernoulli_glm_raw"), theta, 4000);
  const Matrix<double> x = simulate_at(*make_task("bernoulli_glm"), theta, 4000);
  for (std::size_t t = 0; t < tasks::kGlmBins; t += 9) {
    double psi = 0.0;
    for (std::size_t d = 0; d < theta.size(); ++d) psi += glm.design(t, d) * theta[d];
    MeanCheck rate;
    for (std::size_t i = 0; i < y.rows(); ++i) rate.add(y(i, t));
    EXPECT_LT(std::abs(rate.z(1.0 / (1.0 + std::exp(-psi)))), kStandardErrors) << "bin " << t;
  }
  for (std::size_t i = 0; i < 20; ++i) {
    for (std::size_t d = 0; d < theta.size(); ++d) {
      double sum = 0.0;
      for (std::size_t t = 0; t < tasks::kGlmBins; ++t) sum += glm.design(t, d) * y(i, t);
      EXPECT_NEAR(x(i, d), sum, 1e-12);
    }
  }
}

TEST(SimulatorLaw, LotkaVolterraStartsAtThirtyAndOneWithLogNormalNoise) {
  const Matrix<double> x = simulate_at(*make_task("lotka_volterra"), {0.7, 0.1, 0.9, 0.1}, 3000);
  expect_moments(
      x, [](auto row) { return std::log(row[0]); }, std::log(30.0), 0.01, 0.02);
  expect_moments(
      x, [](auto row) { return std::log(row[10]); }, 0.0, 0.01, 0.02);
}

// Both systems keep a quantity, whatever their parameters: an independent measure of the solver's error.
TEST(PopulationCurves, KeepTheConstantsOfMotion) {
  const auto task = make_task("lotka_volterra");
  Matrix<double> theta(200, 4);
  task->prior().sample(5, Stream::check, 0, theta);
  for (std::size_t i = 0; i < theta.rows(); ++i) {
    std::array<double, 20> u;
    ASSERT_TRUE(tasks::solve_lotka_volterra(theta.row(i), u));
    const auto constant = [&](std::size_t k) {
      return theta(i, 3) * std::exp(u[k]) - theta(i, 2) * u[k] + theta(i, 1) * std::exp(u[10 + k]) -
             theta(i, 0) * u[10 + k];
    };
    const double scale = std::abs(theta(i, 3) * 30.0) + std::abs(theta(i, 2) * std::log(30.0)) + theta(i, 1);
    for (std::size_t k = 1; k < 10; ++k)
      EXPECT_NEAR(constant(k), constant(0), 1e-9 * scale) << "row " << i << ", point " << k;
  }
  // Without recovery the epidemic is a logistic curve.
  for (const double beta : {0.2, 0.4, 1.5}) {
    std::array<double, 10> log_infected;
    ASSERT_TRUE(tasks::solve_sir(std::array{beta, 0.0}, log_infected));
    for (std::size_t k = 0; k < 10; ++k) {
      const double growth = beta * 17.0 * static_cast<double>(k);
      const double expected = growth - std::log1p((std::exp(growth) - 1.0) / tasks::kSirPopulation);
      EXPECT_NEAR(log_infected[k], expected, 1e-9) << "beta " << beta << ", point " << k;
    }
  }
}

TEST(PopulationCurves, GiveUpOnParametersWithoutASolution) {
  std::array<double, 10> infected;
  std::array<double, 20> populations;
  EXPECT_FALSE(tasks::solve_sir(std::array{HUGE_VAL, 0.1}, infected));
  EXPECT_FALSE(tasks::solve_sir(std::array{1e9, 1e9}, infected)) << "the step budget is spent";
  EXPECT_FALSE(tasks::solve_lotka_volterra(std::array{1e300, 0.1, 0.1, 0.1}, populations));
  std::vector<double> x(10);
  RandomStream random(1, Stream::check);
  make_task("sir")->simulator().simulate(std::array{1e9, 1e9}, random, x);
  for (const double value : x) EXPECT_TRUE(std::isnan(value)) << "a failed curve is a row of nan";
}

// The published defect of gaussian_mixture: one component for everything a call simulates.
TEST(GaussianMixture, OneCoinPerRowUnlessOnePerCallIsAskedFor) {
  const std::vector<double> theta = {3.0, -4.0};
  const auto pooled_sd = [&](const TaskOptions& options) {
    const Matrix<double> x = simulate_at(*make_task("gaussian_mixture", options), theta, 4000);
    double square = 0.0;
    for (std::size_t i = 0; i < x.rows(); ++i) {
      for (std::size_t d = 0; d < 2; ++d) square += (x(i, d) - theta[d]) * (x(i, d) - theta[d]);
    }
    return std::sqrt(square / static_cast<double>(2 * x.rows()));
  };
  // Standard error of the pooled sd: for the mixture E[r^4] = 1.5 (1 + 1e-4) gives about 0.011 with both coordinates of a
  // row sharing the coin; for one normal component sd / sqrt(2 * 8000).
  EXPECT_NEAR(pooled_sd({}), std::sqrt(0.505), 4 * 0.011);
  std::map<bool, int> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const double sd = pooled_sd({.component_per_call = true, .component_seed = seed});
    const bool wide = sd > 0.5;
    ++seen[wide];
    EXPECT_NEAR(sd, wide ? 1.0 : 0.1, (wide ? 1.0 : 0.1) * 4 / std::sqrt(16000.0)) << "seed " << seed;
  }
  EXPECT_GT(seen[true], 2);
  EXPECT_GT(seen[false], 2);
}

TEST(GaussianMixture, BothCoordinatesShareTheCoin) {
  const Matrix<double> x = simulate_at(*make_task("gaussian_mixture"), {0.0, 0.0}, 20000);
  MeanCheck product;
  for (std::size_t i = 0; i < x.rows(); ++i) product.add(x(i, 0) * x(i, 0) * x(i, 1) * x(i, 1));
  EXPECT_LT(std::abs(product.z(0.5 * (1.0 + 1e-4))), kStandardErrors);
  EXPECT_GT(std::abs(product.z(0.505 * 0.505)), kStandardErrors) << "what two coins would give";
}

// E[h(x) / p(x | theta)] = 1 for any density h inside the support: here uniform on a small box across the crescent. Ties
// the simulator to the complete density, its factor 1 / (pi rho) included.
TEST(TwoMoons, DensityIsThatOfTheSimulator) {
  const auto task = make_task("two_moons");
  const std::vector<double> theta = {0.3, -0.1};
  const double m1 = -std::abs(theta[0] + theta[1]) / std::sqrt(2.0) + 0.25;
  const double m2 = (theta[1] - theta[0]) / std::sqrt(2.0);
  const Matrix<double> x = simulate_at(*task, theta, 40000);
  for (const double angle : {-1.2, 0.0, 0.9}) {
    const double half = 0.015;
    const double c1 = m1 + 0.1 * std::cos(angle);
    const double c2 = m2 + 0.1 * std::sin(angle);
    MeanCheck complete;
    MeanCheck without_factor;
    for (std::size_t i = 0; i < x.rows(); ++i) {
      const bool inside = std::abs(x(i, 0) - c1) < half && std::abs(x(i, 1) - c2) < half;
      double log_p = 0.0;
      task->log_likelihood(Matrix<double>(1, 2, theta), x.row(i), {&log_p, 1});
      const double value = inside ? std::exp(-log_p) / (4.0 * half * half) : 0.0;
      complete.add(value);
      const double rho = std::hypot(x(i, 0) - m1, x(i, 1) - m2);
      without_factor.add(value / (std::numbers::pi * rho));
    }
    EXPECT_LT(std::abs(complete.z(1.0)), kStandardErrors) << "angle " << angle;
    EXPECT_LT(complete.standard_error(), 0.1) << "angle " << angle;
    EXPECT_GT(std::abs(without_factor.z(1.0)), kStandardErrors) << "angle " << angle;
  }
}

TEST(TwoMoons, DensityIntegratesToOneAndVanishesBehindTheCrescent) {
  const auto task = make_task("two_moons");
  const Matrix<double> theta(1, 2, {0.3, -0.1});
  const double m1 = -0.2 / std::sqrt(2.0) + 0.25;
  const double m2 = -0.4 / std::sqrt(2.0);
  const auto density = [&](double rho, double angle) {
    const std::vector<double> x = {m1 + rho * std::cos(angle), m2 + rho * std::sin(angle)};
    double log_p = 0.0;
    task->log_likelihood(theta, x, {&log_p, 1});
    return std::exp(log_p);
  };
  double integral = 0.0;
  const double cell = 1e-3;
  for (int i = 40; i < 160; ++i) {
    const double rho = (i + 0.5) * cell;
    integral += density(rho, 0.8) * rho * cell * std::numbers::pi;
  }
  EXPECT_NEAR(integral, 1.0, 1e-6);
  EXPECT_EQ(density(0.1, 2.0), 0.0);
}

TEST(Binomial, FollowsItsProbabilities) {
  for (const double p : {1e-6, 0.003, 0.2, 0.5, 0.83, 0.9999}) {
    MeanCheck mean;
    MeanCheck square;
    for (std::uint64_t i = 0; i < 20000; ++i) {
      RandomStream random(4, Stream::check, i);
      const double k = tasks::draw_binomial(1000, p, random);
      mean.add(k);
      square.add((k - 1000 * p) * (k - 1000 * p));
    }
    EXPECT_LT(std::abs(mean.z(1000 * p)), kStandardErrors) << p;
    EXPECT_LT(std::abs(square.z(1000 * p * (1 - p))), kStandardErrors) << p;
  }
}

TEST(Binomial, FitsTheProbabilityOfEveryOutcome) {
  // Pearson's chi-square with 8 degrees of freedom: 26.1 is its 0.999 quantile. The control is p = 0.33.
  constexpr int kTrials = 8;
  constexpr int kDraws = 40000;
  std::vector<double> counts(kTrials + 1);
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    RandomStream random(6, Stream::check, i);
    counts[static_cast<std::size_t>(tasks::draw_binomial(kTrials, 0.3, random))] += 1.0;
  }
  const auto chi_square = [&](double p) {
    double sum = 0.0;
    for (int k = 0; k <= kTrials; ++k) {
      const double expected = kDraws * std::exp(tasks::log_binomial_coefficient(kTrials, k)) *
                              std::pow(p, k) * std::pow(1 - p, kTrials - k);
      const double difference = counts[static_cast<std::size_t>(k)] - expected;
      sum += difference * difference / expected;
    }
    return sum;
  };
  EXPECT_LT(chi_square(0.3), 26.1);
  EXPECT_GT(chi_square(0.33), 26.1);
}

TEST(Binomial, HasSureOutcomesAndExactCoefficients) {
  RandomStream random(1, Stream::check);
  EXPECT_EQ(tasks::draw_binomial(1000, 0.0, random), 0);
  EXPECT_EQ(tasks::draw_binomial(1000, 1.0, random), 1000);
  EXPECT_EQ(tasks::draw_binomial(0, 0.4, random), 0);
  EXPECT_NEAR(tasks::log_binomial_coefficient(1000, 3), std::log(1000.0 * 999.0 * 998.0 / 6.0), 1e-11);
  EXPECT_EQ(tasks::log_binomial_coefficient(1000, 0), 0.0);
  EXPECT_THROW(tasks::draw_binomial(1001, 0.5, random), InternalError);
}

TEST(TruncatedNormal, HasTheMeanOfItsLaw) {
  const auto phi = [](double z) { return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi); };
  for (const double mean : {-2.5, -1.1, 0.0, 0.95, 1.4, 6.0}) {
    const double sd = 0.3;
    MeanCheck check;
    for (std::uint64_t i = 0; i < 20000; ++i) {
      RandomStream random(2, Stream::check, i);
      const double value = tasks::draw_truncated_normal(mean, sd, -1.0, 1.0, random);
      ASSERT_TRUE(value >= -1.0 && value <= 1.0);
      check.add(value);
    }
    const double a = (-1.0 - mean) / sd;
    const double b = (1.0 - mean) / sd;
    const double expected =
        mean + sd * (phi(a) - phi(b)) / tasks::normal_interval_probability(mean, sd, -1.0, 1.0);
    EXPECT_LT(std::abs(check.z(expected)), kStandardErrors) << mean;
    EXPECT_GT(std::abs(check.z(expected + 0.05 * sd)), kStandardErrors) << mean;
  }
}

}  // namespace
}  // namespace nrec
