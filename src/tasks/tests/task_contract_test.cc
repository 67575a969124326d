// What every task promises. A new task joins through task_names().
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "mean_check.h"
#include "nrec/core/error.h"
#include "nrec/tasks/task.h"
#include "shared_data.h"

namespace nrec {
namespace {

// Bound in standard errors. Each z below is a fixed number (the seeds are fixed); among about 150 of them one above 4
// would come by chance once in 100 choices of seeds.
constexpr double kStandardErrors = 4.0;

template <class E, class F>
std::string text_of(F&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "no exception of the wanted type";
  return "";
}

class TaskContract : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Task> task_ = make_task(GetParam());

  // A typical theta of the prior.
  std::vector<double> typical_theta() const {
    Matrix<double> theta(1, task_->dim_theta());
    task_->prior().sample(3, Stream::check, 0, theta);
    return theta.values();
  }
  SimulationSet simulate(std::size_t rows, int threads) const {
    ThreadPool pool(threads);
    return simulate_from_prior(task_->prior(), task_->simulator(), rows, 21, pool);
  }
};

TEST_P(TaskContract, NamesAndDimensionsAgree) {
  EXPECT_EQ(task_->name(), GetParam());
  EXPECT_EQ(task_->simulator().name(), GetParam());
  EXPECT_EQ(task_->dim_theta(), task_->simulator().dim_theta());
  EXPECT_EQ(task_->dim_x(), task_->simulator().dim_x());
  EXPECT_EQ(task_->parameter_names().size(), task_->dim_theta());
  EXPECT_TRUE(task_->prior().has_density());
}

TEST_P(TaskContract, PriorDrawsSimulateWithoutFailureAndAreLikely) {
  const SimulationSet set = simulate(300, 2);
  for (std::size_t i = 0; i < set.num_rows(); ++i) {
    ASSERT_EQ(set.status[i], RowStatus::ok) << "row " << i;
    double log_likelihood = 0.0;
    task_->log_likelihood(set.theta.view().middle_rows(i, 1), set.x.row(i), {&log_likelihood, 1});
    ASSERT_TRUE(std::isfinite(log_likelihood)) << "row " << i;
  }
}

TEST_P(TaskContract, RowsAreTheSameAloneInBlocksAndOnAnyNumberOfThreads) {
  const SimulationSet expected = simulate(200, 1);
  for (const int threads : {2, 7}) {
    const SimulationSet set = simulate(200, threads);
    EXPECT_TRUE(set.theta == expected.theta && set.x == expected.x) << threads << " threads";
  }
  ThreadPool pool(1);
  for (const std::size_t row : {0u, 57u, 199u}) {
    Matrix<double> x(1, task_->dim_x());
    std::vector<RowStatus> status(1);
    simulate_rows(task_->simulator(), 21, row, expected.theta.view().middle_rows(row, 1), x, status, pool);
    for (std::size_t j = 0; j < task_->dim_x(); ++j) EXPECT_EQ(x(0, j), expected.x(row, j));
  }
}

TEST_P(TaskContract, LogLikelihoodOfARowDoesNotDependOnItsBlock) {
  const SimulationSet set = simulate(20, 1);
  std::vector<double> block(20);
  task_->log_likelihood(set.theta, set.x.row(4), block);
  for (std::size_t i = 0; i < 20; ++i) {
    double alone = 0.0;
    task_->log_likelihood(set.theta.view().middle_rows(i, 1), set.x.row(4), {&alone, 1});
    EXPECT_EQ(alone, block[i]);
  }
}

TEST_P(TaskContract, NanParametersAreImpossibleAndFailToSimulate) {
  const SimulationSet set = simulate(1, 1);
  for (std::size_t d = 0; d < task_->dim_theta(); ++d) {
    Matrix<double> theta = set.theta;
    theta(0, d) = std::numeric_limits<double>::quiet_NaN();
    double log_likelihood = 0.0;
    task_->log_likelihood(theta, set.x.row(0), {&log_likelihood, 1});
    EXPECT_EQ(log_likelihood, -std::numeric_limits<double>::infinity());
    Matrix<double> x(1, task_->dim_x());
    std::vector<RowStatus> status(1);
    ThreadPool pool(1);
    simulate_rows(task_->simulator(), 1, 0, theta, x, status, pool);
    EXPECT_EQ(status[0], RowStatus::non_finite) << "parameter " << d;
  }
}

TEST_P(TaskContract, RefusesArraysAndObservationsThatDoNotFit) {
  const SimulationSet set = simulate(2, 1);
  const std::string where = "task " + GetParam() + ": ";
  const std::size_t dim = task_->dim_theta();
  const std::size_t data = task_->dim_x();
  std::vector<double> out(2);
  EXPECT_EQ(
      text_of<ShapeError>([&] { task_->log_likelihood(Matrix<double>(2, dim + 1), set.x.row(0), out); }),
      where + "theta has " + std::to_string(dim + 1) + " columns but the task has " + std::to_string(dim) +
          " parameters; give one column per parameter");
  EXPECT_EQ(text_of<ShapeError>([&] { task_->log_likelihood(Matrix<double>(3, dim), set.x.row(0), out); }),
            where + "log_likelihood has room for 2 values but theta has 3 rows; give one value per row");
  EXPECT_EQ(text_of<ShapeError>([&] { task_->log_likelihood(set.theta, set.x.row(0).first(data - 1), out); }),
            where + "x_o has " + std::to_string(data - 1) + " numbers but one observation has " +
                std::to_string(data) + "; give one row of the simulator's output");
  std::vector<double> x_o(set.x.row(0).begin(), set.x.row(0).end());
  x_o[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(text_of<DomainError>([&] { task_->log_likelihood(set.theta, x_o, out); }),
            where + "x_o column 2 = nan; an observation must be finite");
}

TEST_P(TaskContract, ReferenceDrawsAreRowsOfTheirNumberOrRefused) {
  const SimulationSet set = simulate(1, 1);
  if (!task_->has_reference_posterior()) {
    EXPECT_EQ(text_of<UnsupportedError>([&] { task_->reference_posterior(set.x.row(0), 5, 1); }),
              "task " + GetParam() +
                  " has no exact posterior sampler; read the benchmark's reference samples of its ten "
                  "observations, or sample "
                  "prior times likelihood by MCMC");
    return;
  }
  Matrix<double> many = task_->reference_posterior(set.x.row(0), 50, 9);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_TRUE(task_->prior().contains(many.row(i)));
    double log_likelihood = 0.0;
    task_->log_likelihood(many.view().middle_rows(i, 1), set.x.row(0), {&log_likelihood, 1});
    EXPECT_TRUE(std::isfinite(log_likelihood));
  }
  many.resize_rows(7);
  EXPECT_EQ(task_->reference_posterior(set.x.row(0), 7, 9), many);
  EXPECT_FALSE(task_->reference_posterior(set.x.row(0), 7, 10) == many);
  EXPECT_EQ(task_->reference_posterior(set.x.row(0), 0, 9).rows(), 0u);
}

// Scores d log p(x | theta) / d theta by central differences, and ratios p(x | theta') / p(x | theta) with theta' half a
// standard deviation away in each direction, at data simulated at `data_theta`.
struct Identities {
  std::vector<MeanCheck> score;  // mean 0 if x is simulated at theta
  std::vector<MeanCheck> ratio;  // mean 1 if x is simulated at theta
};

Identities identities(const Task& task, const std::vector<double>& theta,
                      const std::vector<double>& data_theta, std::size_t rows) {
  constexpr double kRelativeStep = 1e-4;
  const std::size_t dim = theta.size();
  const auto x_of = [&](std::size_t row) {
    RandomStream random(17, Stream::simulator, row);
    std::vector<double> x(task.dim_x());
    task.simulator().simulate(data_theta, random, x);
    return x;
  };
  // Rows 2d, 2d + 1: theta_d plus and minus a step.
  Matrix<double> shifted(2 * dim, dim);
  std::vector<double> step(dim);
  for (std::size_t d = 0; d < dim; ++d) {
    step[d] = kRelativeStep * std::max(std::abs(theta[d]), 0.1);
    for (std::size_t side = 0; side < 2; ++side) {
      std::copy(theta.begin(), theta.end(), shifted.row(2 * d + side).begin());
      shifted(2 * d + side, d) += side == 0 ? step[d] : -step[d];
    }
  }
  Identities result{std::vector<MeanCheck>(dim), std::vector<MeanCheck>(dim)};
  std::vector<double> log_p(2 * dim);
  for (std::size_t i = 0; i < rows; ++i) {
    task.log_likelihood(shifted, x_of(i), log_p);
    for (std::size_t d = 0; d < dim; ++d)
      result.score[d].add((log_p[2 * d] - log_p[2 * d + 1]) / (2.0 * step[d]));
  }
  // The variance of the score is the Fisher information; its root is the scale on which p changes.
  Matrix<double> moved(dim + 1, dim);
  for (std::size_t d = 0; d <= dim; ++d) std::copy(theta.begin(), theta.end(), moved.row(d).begin());
  for (std::size_t d = 0; d < dim; ++d) moved(d, d) += 0.5 / std::sqrt(result.score[d].variance());
  log_p.resize(dim + 1);
  for (std::size_t i = 0; i < rows; ++i) {
    task.log_likelihood(moved, x_of(i), log_p);
    for (std::size_t d = 0; d < dim; ++d) result.ratio[d].add(std::exp(log_p[d] - log_p[dim]));
  }
  return result;
}

// Tasks whose data may take the same values under every theta. two_moons is not among them: its density jumps at the edge
// of a crescent that moves with theta, so neither identity below holds; simulator_law_test.cc has a test of its own.
class FixedSupportContract : public TaskContract {
 public:
  static std::vector<std::string> names() {
    std::vector<std::string> names = task_names();
    std::erase(names, "two_moons");
    return names;
  }
};

// E[d log p / d theta] = 0 and E[p(x | theta') / p(x | theta)] = 1 over x ~ p(x | theta) tie simulator and likelihood.
TEST_P(FixedSupportContract, LikelihoodIsThatOfTheSimulator) {
  const std::vector<double> theta = typical_theta();
  const Identities checks = identities(*task_, theta, theta, 800);
  for (std::size_t d = 0; d < theta.size(); ++d) {
    EXPECT_LT(std::abs(checks.score[d].z(0.0)), kStandardErrors) << "score of parameter " << d + 1;
    EXPECT_LT(std::abs(checks.ratio[d].z(1.0)), kStandardErrors) << "ratio of parameter " << d + 1;
    EXPECT_LT(checks.ratio[d].standard_error(), 0.05) << "the ratio says something";
  }
  // Negative control: data simulated half a standard deviation away in one direction.
  for (std::size_t d = 0; d < theta.size(); ++d) {
    std::vector<double> wrong = theta;
    wrong[d] += 0.5 / std::sqrt(checks.score[d].variance());
    EXPECT_GT(std::abs(identities(*task_, theta, wrong, 400).score[d].z(0.0)), kStandardErrors)
        << "parameter " << d + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(AllTasks, TaskContract, testing::ValuesIn(task_names()), task_of);
INSTANTIATE_TEST_SUITE_P(AllTasks, FixedSupportContract, testing::ValuesIn(FixedSupportContract::names()),
                         task_of);

TEST(MakeTask, RefusesUnknownNamesAndNamesTheNearest) {
  const std::string known =
      "Known tasks: gaussian_linear gaussian_linear_uniform gaussian_mixture two_moons slcp slcp_distractors "
      "bernoulli_glm "
      "bernoulli_glm_raw sir lotka_volterra";
  EXPECT_EQ(text_of<ConfigError>([] { make_task("two-moon"); }),
            "task = \"two-moon\" is not a known task; did you mean two_moons? " + known);
  EXPECT_EQ(text_of<ConfigError>([] { make_task("weather"); }),
            "task = \"weather\" is not a known task; " + known);
}

TEST(MakeTask, RefusesTheSwitchOfAnotherTask) {
  EXPECT_EQ(text_of<ConfigError>([] { make_task("slcp", {.component_per_call = true}); }),
            "task slcp: component_per_call = true is a switch of gaussian_mixture alone; leave it out for "
            "this task");
}

TEST(MakeTask, NamesParametersAsTheModelsDo) {
  EXPECT_EQ(make_task("sir")->parameter_names(), (std::vector<std::string>{"beta", "gamma"}));
  EXPECT_EQ(make_task("lotka_volterra")->parameter_names(),
            (std::vector<std::string>{"alpha", "beta", "gamma", "delta"}));
  EXPECT_EQ(make_task("two_moons")->parameter_names(),
            (std::vector<std::string>{"parameter_1", "parameter_2"}));
}

}  // namespace
}  // namespace nrec
