#include "nrec/simulation/rows_at.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <thread>

#include "nrec/core/error.h"
#include "nrec/simulation/simulator.h"

namespace nrec {
namespace {

/// x = (theta, theta + noise); fails above 10, is nan below -10.
FunctionSimulator toy() {
  return {"toy", 1, 2, [](std::span<const double> theta, RandomStream& random, std::span<double> x) {
            if (theta[0] > 10.0) throw std::runtime_error("too large");
            x[0] = theta[0] < -10.0 ? std::nan("") : theta[0];
            x[1] = theta[0] + random.normal();
          }};
}

Matrix<double> thetas(std::size_t rows) {
  Matrix<double> theta(rows, 1);
  for (std::size_t i = 0; i < rows; ++i) theta(i, 0) = 0.001 * static_cast<double>(i);
  return theta;
}

class SimulateAt : public ::testing::Test {
 protected:
  SimulationSet simulate(MatrixView<const double> theta, const RowsAtOptions& options,
                         const StopRequest* stop = nullptr) {
    const RunContext run = {.pool = pool_, .stop = stop};
    nrec::RowsAt found = simulate_at(
        theta, 2, [&] { return make_row_runner(simulator_, options.seed); }, options, run);
    first_failure_ = found.first_failure;
    return std::move(found.set);
  }

  ThreadPool pool_{1};
  const FunctionSimulator simulator_ = toy();
  std::string first_failure_;
};

TEST_F(SimulateAt, AreThoseOfTheSimulatorInTheOrderOfTheta) {
  const Matrix<double> theta = thetas(1000);
  Matrix<double> expected(1000, 2);
  std::vector<RowStatus> status(1000);
  simulate_rows(simulator_, 5, 0, theta, expected, status, pool_);
  for (const int workers : {1, 3, 7}) {
    const SimulationSet set = simulate(theta, {.seed = 5, .workers = workers});
    EXPECT_EQ(set.theta.values(), theta.values());
    EXPECT_EQ(set.x.values(), expected.values());
    EXPECT_EQ(set.status, status);
  }
  EXPECT_NE(simulate(theta, {.seed = 6}).x.values(), expected.values());
}

TEST_F(SimulateAt, FailuresKeepTheirPlaceAndStatus) {
  Matrix<double> theta = thetas(4);
  theta(1, 0) = 11.0;
  theta(2, 0) = -11.0;
  const SimulationSet set = simulate(theta, {});
  ASSERT_EQ(set.num_rows(), 4u);
  EXPECT_EQ(set.status,
            (std::vector<RowStatus>{RowStatus::ok, RowStatus::failed, RowStatus::non_finite, RowStatus::ok}));
  EXPECT_TRUE(std::isnan(set.x(1, 0)) && std::isnan(set.x(1, 1)) && std::isnan(set.x(2, 0)));
  EXPECT_EQ(set.x(3, 0), theta(3, 0));
  EXPECT_EQ(first_failure_.rfind("row 1: ", 0), 0u) << first_failure_;
  EXPECT_NE(first_failure_.find("too large"), std::string::npos) << first_failure_;
}

TEST_F(SimulateAt, NoRowsAreNoWork) { EXPECT_EQ(simulate(Matrix<double>(0, 1), {}).num_rows(), 0u); }

/// Answers its first `answered` rows, then waits for the stop.
class WaitingRunner final : public RowRunner {
 public:
  void run(std::span<const RowTask> tasks, const std::function<void(RowResult&&)>& done,
           const StopRequest& stop) override {
    for (const RowTask& task : tasks) {
      while (task.row >= 3 && !stop.requested()) std::this_thread::yield();
      if (stop.requested()) return;
      done({.row = task.row, .x = {task.theta[0], 0.0}});
    }
  }
};

TEST_F(SimulateAt, AStopAndATimeLimitLeaveTheRowsThatAreThere) {
  const Matrix<double> theta = thetas(10);
  const auto waiting = [] { return std::make_unique<WaitingRunner>(); };
  const RunContext limited = {.pool = pool_, .time_limit = 0.3};
  const SimulationSet some = simulate_at(theta, 2, waiting, {.workers = 2}, limited).set;
  ASSERT_EQ(some.num_rows(), 3u);
  EXPECT_EQ(some.theta(2, 0), theta(2, 0));
  StopRequest stop;
  stop.request(1);
  const RunContext stopped = {.pool = pool_, .stop = &stop};
  EXPECT_LE(simulate_at(theta, 2, waiting, {.workers = 2}, stopped).set.num_rows(), 3u);
}

TEST_F(SimulateAt, ErrorsOfARunnerComeThrough) {
  const RunContext run = {.pool = pool_};
  const auto broken = []() -> std::unique_ptr<RowRunner> { throw IoError("the program is gone"); };
  EXPECT_THROW(simulate_at(thetas(5), 2, broken, {.workers = 2}, run), IoError);
}

}  // namespace
}  // namespace nrec
