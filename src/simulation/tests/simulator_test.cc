#include "nrec/simulation/simulator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "nrec/core/error.h"

namespace nrec {
namespace {

Prior unit_prior() {
  return Prior::from_terms({{{"a"}, "uniform", {{"low", {0.0}}, {"high", {1.0}}}},
                            {{"b"}, "uniform", {{"low", {2.0}}, {"high", {3.0}}}}});
}

// Three noisy numbers; how many numbers are drawn depends on theta, so rows that shared a stream would differ.
FunctionSimulator noisy_simulator() {
  return {"noisy", 2, 3, [](std::span<const double> theta, RandomStream& random, std::span<double> x) {
            if (theta[0] > 0.5) random.uniform();
            for (double& value : x) value = theta[0] + theta[1] * random.normal();
          }};
}

// Fails in every way there is, by the value of the first parameter.
FunctionSimulator failing_simulator() {
  return {"failing", 2, 2, [](std::span<const double> theta, RandomStream&, std::span<double> x) {
            x[0] = theta[0];
            if (theta[0] == 1.0) throw std::runtime_error("the beam is off");
            if (theta[0] == 2.0) throw 7;  // NOLINT: what a foreign library may do
            x[1] = theta[0] == 3.0 ? std::nan("") : theta[0] == 4.0 ? -HUGE_VAL : theta[1];
          }};
}

class Notes final : public LogSink {
 public:
  void warning(std::string_view text) override { warnings.emplace_back(text); }
  std::vector<std::string> warnings;
};

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

TEST(FunctionSimulator, RefusesEmptyDimensionsAndFunctions) {
  const auto nothing = [](std::span<const double>, RandomStream&, std::span<double>) {};
  EXPECT_EQ(text_of<ShapeError>([&] { FunctionSimulator("f", 0, 1, nothing); }),
            "simulator f: dim_theta = 0; a simulator needs at least one parameter");
  EXPECT_EQ(text_of<ShapeError>([&] { FunctionSimulator("f", 1, 0, nothing); }),
            "simulator f: dim_x = 0; a simulator needs at least one datum");
  EXPECT_EQ(text_of<ConfigError>([&] { FunctionSimulator("f", 1, 1, nullptr); }),
            "simulator f: the function is empty; give a callable");
}

TEST(SimulateRows, TurnsFailuresIntoStatuses) {
  const Matrix<double> theta(5, 2, {0, 9, 1, 9, 2, 9, 3, 9, 4, 9});
  Matrix<double> x(5, 2);
  std::vector<RowStatus> status(5);
  ThreadPool pool(2);
  simulate_rows(failing_simulator(), 1, 0, theta, x, status, pool);
  EXPECT_EQ(status, (std::vector<RowStatus>{RowStatus::ok, RowStatus::failed, RowStatus::failed,
                                            RowStatus::non_finite, RowStatus::non_finite}));
  EXPECT_EQ(x(0, 1), 9.0);
  // What a throwing simulator had already written is gone; what a finished one wrote is kept.
  EXPECT_TRUE(std::isnan(x(1, 0)) && std::isnan(x(2, 0)));
  EXPECT_EQ(x(3, 0), 3.0);
}

TEST(SimulateRows, AcceptsNoRows) {
  ThreadPool pool(2);
  std::vector<RowStatus> status;
  simulate_rows(noisy_simulator(), 1, 0, Matrix<double>(0, 2), Matrix<double>(0, 3).view(), status, pool);
  EXPECT_TRUE(status.empty());
}

TEST(SimulateRows, RefusesArraysThatDoNotMatch) {
  ThreadPool pool(1);
  const FunctionSimulator simulator = noisy_simulator();
  const auto run = [&](std::size_t theta_cols, std::size_t x_rows, std::size_t x_cols, std::size_t statuses) {
    Matrix<double> x(x_rows, x_cols);
    std::vector<RowStatus> status(statuses);
    simulate_rows(simulator, 1, 0, Matrix<double>(4, theta_cols), x, status, pool);
  };
  const std::string end = " (simulator noisy); give arrays of matching size";
  EXPECT_EQ(text_of<ShapeError>([&] { run(3, 4, 3, 4); }),
            "simulate: theta.cols = 3 but dim_theta = 2" + end);
  EXPECT_EQ(text_of<ShapeError>([&] { run(2, 4, 2, 4); }), "simulate: x.cols = 2 but dim_x = 3" + end);
  EXPECT_EQ(text_of<ShapeError>([&] { run(2, 5, 3, 4); }), "simulate: x.rows = 5 but theta.rows = 4" + end);
  EXPECT_EQ(text_of<ShapeError>([&] { run(2, 4, 3, 3); }),
            "simulate: status.size = 3 but theta.rows = 4" + end);
}

TEST(SimulateFromPrior, GivesEveryRowTheSameBitsOnAnyNumberOfThreads) {
  constexpr std::size_t kRows = 5000;
  ThreadPool one(1);
  const SimulationSet expected = simulate_from_prior(unit_prior(), noisy_simulator(), kRows, 11, one);
  EXPECT_EQ(expected.parameter_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(expected.source, "simulator noisy, seed 11");
  EXPECT_EQ(expected.status, std::vector<RowStatus>(kRows, RowStatus::ok));
  for (const int threads : {2, 3, 7}) {
    ThreadPool pool(threads);
    const SimulationSet set = simulate_from_prior(unit_prior(), noisy_simulator(), kRows, 11, pool);
    EXPECT_TRUE(set.theta == expected.theta && set.x == expected.x) << threads << " threads";
  }
  // A different seed is a different set, and rows of one set differ.
  EXPECT_FALSE(simulate_from_prior(unit_prior(), noisy_simulator(), kRows, 12, one).x == expected.x);
  EXPECT_NE(expected.x(0, 0), expected.x(1, 0));
}

TEST(SimulateFromPrior, MakesRowsThatDependOnTheirNumberAlone) {
  ThreadPool pool(2);
  const SimulationSet all = simulate_from_prior(unit_prior(), noisy_simulator(), 300, 5, pool);
  EXPECT_EQ(simulate_from_prior(unit_prior(), noisy_simulator(), 17, 5, pool).x, [&] {
    Matrix<double> first = all.x;
    first.resize_rows(17);
    return first;
  }());
  for (const std::size_t row : {0u, 123u, 299u}) {
    Matrix<double> theta(1, 2);
    Matrix<double> x(1, 3);
    std::vector<RowStatus> status(1);
    unit_prior().sample(5, Stream::prior, row, theta);
    simulate_rows(noisy_simulator(), 5, row, theta, x, status, pool);
    for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ(x(0, j), all.x(row, j));
  }
}

TEST(SimulateFromPrior, WarnsOfFailuresWithTheFirstError) {
  const FunctionSimulator half("half", 2, 1,
                               [](std::span<const double> theta, RandomStream&, std::span<double> x) {
                                 if (theta[0] < 0.5)
                                   throw std::runtime_error("theta = " + std::to_string(theta[0]));
                                 x[0] = theta[1];
                               });
  std::string first_text;
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    Notes notes;
    const SimulationSet set = simulate_from_prior(unit_prior(), half, 1000, 3, pool, notes);
    std::size_t failed = 0;
    std::size_t first = set.num_rows();
    for (std::size_t i = 0; i < set.num_rows(); ++i) {
      ASSERT_EQ(set.status[i] == RowStatus::failed, set.theta(i, 0) < 0.5);
      if (set.status[i] != RowStatus::failed) continue;
      ++failed;
      first = std::min(first, i);
    }
    ASSERT_EQ(notes.warnings.size(), 1u);
    EXPECT_EQ(
        notes.warnings[0],
        "simulate: " + std::to_string(failed) +
            " of 1000 simulations failed; they are kept with a status, and failures = stop | model | drop "
            "says what training does with them. First error: theta = " +
            std::to_string(set.theta(first, 0)));
  }
}

TEST(SimulateFromPrior, RefusesNoRowsAndMismatchedPriors) {
  ThreadPool pool(1);
  EXPECT_EQ(text_of<DomainError>([&] { simulate_from_prior(unit_prior(), noisy_simulator(), 0, 1, pool); }),
            "simulate: num_simulations = 0; at least one simulation is needed");
  const FunctionSimulator three("three", 3, 1,
                                [](std::span<const double>, RandomStream&, std::span<double>) {});
  EXPECT_EQ(text_of<ShapeError>([&] { simulate_from_prior(unit_prior(), three, 10, 1, pool); }),
            "simulate: prior.dim = 2 but dim_theta = 3 (simulator three); give arrays of matching size");
}

}  // namespace
}  // namespace nrec
