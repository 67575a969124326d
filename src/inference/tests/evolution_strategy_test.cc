#include "inference/evolution_strategy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace nrec {
namespace {

using Function = std::function<double(std::span<const double>)>;

/// Runs a search to its end; returns the number of evaluations.
std::size_t maximise(EvolutionStrategy& search, std::size_t dim, const Function& function) {
  Matrix<double> points(search.num_points(), dim);
  std::vector<double> value(points.rows());
  std::size_t evaluations = 0;
  while (!search.has_converged() && evaluations < 200000) {
    search.ask(points);
    for (std::size_t i = 0; i < points.rows(); ++i) value[i] = function(std::as_const(points).row(i));
    search.tell(points, value);
    evaluations += points.rows();
  }
  return evaluations;
}

EvolutionStrategy start_at(std::vector<double> start, double variance = 1.0) {
  const std::size_t dim = start.size();
  Matrix<double> covariance(dim, dim);
  for (std::size_t d = 0; d < dim; ++d) covariance(d, d) = variance;
  return {start, covariance, RandomStream(1, Stream::check)};
}

TEST(EvolutionStrategy, FindsTheTopOfAnIllConditionedEllipsoid) {
  constexpr std::size_t dim = 10;  // axes from 1 to 1000
  EvolutionStrategy search = start_at(std::vector<double>(dim, 3.0));
  const std::size_t evaluations = maximise(search, dim, [](std::span<const double> x) {
    double sum = 0;
    for (std::size_t d = 0; d < dim; ++d)
      sum -= std::pow(1e6, static_cast<double>(d) / 9.0) * std::pow(x[d] - 0.1 * static_cast<double>(d), 2);
    return sum;
  });
  EXPECT_GT(search.best_value(), -1e-5);
  EXPECT_LT(evaluations, 20000u);
  for (std::size_t d = 0; d < dim; ++d)
    EXPECT_NEAR(search.best_point()[d], 0.1 * static_cast<double>(d), 5e-3);
}

TEST(EvolutionStrategy, FollowsACurvedValley) {
  EvolutionStrategy search = start_at({-1.2, 1.0, -0.5, 0.8}, 0.25);
  maximise(search, 4, [](std::span<const double> x) {  // Rosenbrock's function
    double sum = 0;
    for (std::size_t d = 0; d + 1 < x.size(); ++d)
      sum -= 100 * std::pow(x[d + 1] - x[d] * x[d], 2) + std::pow(1 - x[d], 2);
    return sum;
  });
  for (const double value : search.best_point()) EXPECT_NEAR(value, 1.0, 0.01);
}

TEST(EvolutionStrategy, DoesNotMindKinksWallsAndNan) {
  EvolutionStrategy search = start_at({2.0, -1.0});
  maximise(search, 2, [](std::span<const double> x) {
    if (x[0] < 0.5) return -std::numeric_limits<double>::infinity();  // the top is at the wall
    if (x[1] > 5) return std::nan("");
    return -x[0] - 10 * std::fabs(x[1] - 0.25 * x[0]);
  });
  EXPECT_NEAR(search.best_point()[0], 0.5, 1e-4);
  EXPECT_NEAR(search.best_point()[1], 0.125, 1e-4);
}

TEST(EvolutionStrategy, EndsWhereThereIsNothingToFind) {
  EvolutionStrategy nowhere = start_at({1.0});
  EXPECT_LT(maximise(nowhere, 1, [](std::span<const double>) { return std::nan(""); }), 1000u);
  EXPECT_EQ(nowhere.best_value(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(nowhere.best_point(), std::vector<double>{1.0});
  EvolutionStrategy flat = start_at({1.0, 2.0});
  EXPECT_LT(maximise(flat, 2, [](std::span<const double>) { return 3.0; }), 1000u);
  EXPECT_EQ(flat.best_value(), 3.0);
}

TEST(EvolutionStrategy, MendsACovarianceThatIsSingular) {
  EvolutionStrategy search(std::vector<double>{1.0, 1.0}, Matrix<double>(2, 2, {1, 1, 1, 1}),
                           RandomStream(1, Stream::check));
  maximise(search, 2, [](std::span<const double> x) { return -x[0] * x[0] - (x[1] - 2) * (x[1] - 2); });
  EXPECT_NEAR(search.best_point()[0], 0.0, 2e-3);
  EXPECT_NEAR(search.best_point()[1], 2.0, 2e-3);
}

}  // namespace
}  // namespace nrec
