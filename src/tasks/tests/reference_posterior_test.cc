// Made reference posteriors and their evidence, against closed forms and the benchmark's own samples.
#include "nrec/tasks/reference_posterior.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "mean_check.h"
#include "nrec/core/error.h"
#include "nrec/tasks/benchmark_files.h"
#include "shared_data.h"
#include "tasks/t_mixture.h"

namespace nrec {
namespace {

constexpr double kStandardErrors = 4.5;  // about a hundred z values at fixed seeds

double log_normal(double x, double variance) {
  return -0.5 * x * x / variance - 0.5 * std::log(2.0 * std::numbers::pi * variance);
}
double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// x_o = a draw of the model, for every task.
std::vector<double> example(const Task& task) { return make_observation(task, 1).x_o; }

void expect_evidence(const ReferencePosterior& reference, double exact) {
  EXPECT_LT(std::fabs(reference.log_evidence - exact), 4.0 * reference.log_evidence_se);
  EXPECT_LT(reference.log_evidence_se, 0.03);
  EXPECT_GT(std::fabs(reference.log_evidence - (exact + 0.2)), 4.0 * reference.log_evidence_se) << "control";
}

TEST(Evidence, OfGaussianTasksHasItsClosedForm) {
  ThreadPool pool(2);
  const auto linear = make_task("gaussian_linear");
  const std::vector<double> x_o = example(*linear);
  double exact = 0.0;
  for (const double x : x_o) exact += log_normal(x, 0.2);
  expect_evidence(make_reference_posterior(*linear, x_o, 5000, 3, pool), exact);

  const auto uniform = make_task("gaussian_linear_uniform");
  const std::vector<double> x_u = example(*uniform);
  exact = 0.0;
  for (const double x : x_u) {
    const double sd = std::sqrt(0.1);
    exact += std::log(0.5 * (normal_cdf((1.0 - x) / sd) - normal_cdf((-1.0 - x) / sd)));
  }
  expect_evidence(make_reference_posterior(*uniform, x_u, 5000, 3, pool), exact);

  const auto mixture = make_task("gaussian_mixture");
  const std::vector<double> inside = {1.0, -2.0};  // ten standard deviations from the walls
  expect_evidence(make_reference_posterior(*mixture, inside, 5000, 3, pool), -std::log(400.0));
}

// theta -> x keeps area, so p(x_o) is a quarter of the number of crescents that lie in the box: both of them here.
TEST(Evidence, OfTwoMoonsCountsItsCrescents) {
  ThreadPool pool(2);
  const auto task = make_task("two_moons");
  expect_evidence(make_reference_posterior(*task, std::vector<double>{-0.2, 0.1}, 5000, 3, pool),
                  std::log(0.5));
}

TEST(ReferencePosterior, IsTheSameForAnyNumberOfThreads) {
  ThreadPool one(1), three(3);
  const auto task = make_task("bernoulli_glm");
  const std::vector<double> x_o = example(*task);
  const ReferencePosterior a = make_reference_posterior(*task, x_o, 300, 5, one);
  const ReferencePosterior b = make_reference_posterior(*task, x_o, 300, 5, three);
  EXPECT_EQ(a.theta, b.theta);
  EXPECT_EQ(a.log_evidence, b.log_evidence);
  EXPECT_EQ(a.error, b.error);
  EXPECT_NE(make_reference_posterior(*task, x_o, 300, 6, one).theta, a.theta);
}

TEST(ReferencePosterior, IsExactWhereTheTaskIs) {
  ThreadPool pool(1);
  const auto task = make_task("two_moons");
  const std::vector<double> x_o = example(*task);
  const ReferencePosterior reference = make_reference_posterior(*task, x_o, 100, 7, pool);
  EXPECT_EQ(reference.method, "exact");
  EXPECT_EQ(reference.error, 0.0);
  EXPECT_EQ(reference.theta, task->reference_posterior(x_o, 100, 7));
}

TEST(ReferencePosterior, StopsWhenAsked) {
  ThreadPool pool(1);
  StopRequest stop;
  stop.request(15);
  const auto task = make_task("slcp");
  const ReferencePosterior reference = make_reference_posterior(*task, example(*task), 100, 7, pool, &stop);
  EXPECT_FALSE(reference.is_complete);
  EXPECT_EQ(reference.theta.rows(), 0u);
}

TEST(ReferencePosterior, RefusesAnObservationThatNothingCanHaveMade) {
  ThreadPool pool(1);
  const auto task = make_task("slcp");
  // The squared distances overflow: no theta gives a density.
  try {
    make_reference_posterior(*task, std::vector<double>(8, 1e200), 10, 1, pool);
    FAIL() << "accepted";
  } catch (const DomainError& error) {
    EXPECT_STREQ(
        error.what(),
        "task slcp: none of 4000 thetas of the prior can have made x_o; give an observation that the "
        "simulator can make");
  }
}

std::vector<MeanCheck> moments(MatrixView<const double> theta) {
  const std::size_t dim = theta.cols;
  std::vector<MeanCheck> checks(3 * dim);
  for (std::size_t i = 0; i < theta.rows; ++i) {
    for (std::size_t d = 0; d < dim; ++d) {
      checks[3 * d].add(theta(i, d));
      checks[3 * d + 1].add(theta(i, d) * theta(i, d));
      checks[3 * d + 2].add(theta(i, d) * theta(i, (d + 1) % dim));
    }
  }
  return checks;
}

double largest_z(MatrixView<const double> a, MatrixView<const double> b) {
  const std::vector<MeanCheck> first = moments(a), second = moments(b);
  double largest = 0.0;
  for (std::size_t k = 0; k < first.size(); ++k)
    largest = std::max(largest, std::fabs(z_difference(first[k], second[k])));
  return largest;
}

class MadeReference : public testing::TestWithParam<std::string> {};

TEST_P(MadeReference, AgreesWithTheSamplesOfTheBenchmark) {
  NREC_NEEDS_SHARED("sbibm");
  ThreadPool pool(2);
  const auto task = make_task(GetParam());
  const BenchmarkObservation& observation = benchmark_observation(GetParam(), 2);
  const ReferencePosterior made = make_reference_posterior(*task, observation.x_o, 5000, 31, pool);
  EXPECT_TRUE(made.is_complete);
  EXPECT_EQ(made.method, "rejection");
  EXPECT_LT(made.error, 3e-3);
  EXPECT_LT(made.log_evidence_se, 0.01);
  EXPECT_LT(largest_z(made.theta, observation.reference_posterior), kStandardErrors);
  const BenchmarkObservation& other = benchmark_observation(GetParam(), 3);
  EXPECT_GT(largest_z(made.theta, other.reference_posterior), kStandardErrors)
      << "control: another observation";
}

INSTANTIATE_TEST_SUITE_P(TasksWithALikelihood, MadeReference,
                         testing::Values("slcp", "slcp_distractors", "bernoulli_glm", "bernoulli_glm_raw",
                                         "sir", "lotka_volterra"),
                         task_of);

TEST(ReferenceLogDensity, IsNormalised) {
  const auto task = make_task("gaussian_linear");
  const std::vector<double> x_o = example(*task);
  double evidence = 0.0, exact = 0.0;
  std::vector<double> theta(10, 0.1);
  for (std::size_t d = 0; d < 10; ++d) {
    evidence += log_normal(x_o[d], 0.2);
    exact += log_normal(theta[d] - 0.5 * x_o[d], 0.05);
  }
  EXPECT_NEAR(reference_log_density(*task, x_o, theta, evidence), exact, 1e-10);
  const auto box = make_task("two_moons");
  EXPECT_TRUE(std::isinf(reference_log_density(*box, example(*box), std::vector<double>{2.0, 0.0}, 0.0)));
}

TEST(MadeObservations, DifferByNumberAndAttemptAndAreRepeated) {
  for (const std::string& name : task_names()) {
    const auto task = make_task(name);
    const MadeObservation one = make_observation(*task, 1);
    EXPECT_EQ(make_observation(*task, 1).x_o, one.x_o) << name;
    EXPECT_NE(make_observation(*task, 2).true_parameters, one.true_parameters) << name;
    EXPECT_NE(make_observation(*task, 1, 1).true_parameters, one.true_parameters) << name;
    EXPECT_TRUE(task->prior().contains(one.true_parameters)) << name;
  }
  try {
    make_observation(*make_task("slcp"), 0);
    FAIL() << "accepted";
  } catch (const DomainError& error) {
    EXPECT_STREQ(error.what(), "task slcp: observation number = 0 must be at least 1");
  }
}

TEST(TMixture, HasADensityThatItsDrawsFollow) {
  // Two clusters in two dimensions; the density integrates to one over draws of a wider mixture.
  RandomStream random(3, Stream::check);
  Matrix<double> points(2000, 2);
  for (std::size_t i = 0; i < points.rows(); ++i) {
    const double side = i % 4 == 0 ? -5.0 : 5.0;
    points(i, 0) = side + random.normal();
    points(i, 1) = 0.3 * random.normal() + 0.5 * points(i, 0);
  }
  const tasks::TMixture mixture = tasks::TMixture::fit(points, 2, 1);
  Matrix<double> wide_points = points;
  for (double& value : wide_points.values()) value *= 2.0;
  const tasks::TMixture wide = tasks::TMixture::fit(wide_points, 2, 1);
  std::vector<double> point(2), scratch(2);
  MeanCheck integral, left;
  for (int i = 0; i < 40000; ++i) {
    wide.draw(random, point);
    integral.add(std::exp(mixture.log_density(point, scratch) - wide.log_density(point, scratch)));
    mixture.draw(random, point);
    left.add(point[0] < 0.0 ? 1.0 : 0.0);
  }
  EXPECT_LT(std::fabs(integral.z(1.0)), kStandardErrors);
  EXPECT_GT(std::fabs(integral.z(1.1)), kStandardErrors) << "control";
  EXPECT_NEAR(left.mean(), 0.25, 0.02);
}

}  // namespace
}  // namespace nrec
