#include "nrec/inference/map_estimate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nrec/core/error.h"
#include "nrec/inference/sample.h"

namespace nrec {
namespace {

PriorTerm scalar(const char* name, const char* family,
                 std::vector<std::pair<std::string, std::vector<double>>> parameters) {
  return {{name}, family, std::move(parameters), "auto"};
}

/// A log ratio of each row.
template <class Row>
Posterior posterior_of(const Prior& prior, const Row& row) {
  return Posterior::from_log_ratio(prior, [row](MatrixView<const double> theta, std::span<double> r) {
    for (std::size_t i = 0; i < theta.rows; ++i) r[i] = row(theta.row(i));
  });
}

class Map : public ::testing::Test {
 protected:
  Matrix<double> draws_of(const Posterior& posterior) {
    SamplingOptions options;
    options.num_samples = 2000;
    return sample(posterior, options, run_).theta;
  }
  /// Starts that are wider than the posterior.
  MapEstimate map_from_prior(const Posterior& posterior) {
    Matrix<double> draws(2000, posterior.prior().dim());
    posterior.prior().sample(1, Stream::observation, 0, draws);
    return find_map(posterior, draws, run_);
  }
  MapEstimate map_of(const Posterior& posterior) { return find_map(posterior, draws_of(posterior), run_); }

  ThreadPool pool_{2};
  RunContext run_{.pool = pool_};
};

TEST_F(Map, OfAConjugateGaussianIsItsMean) {
  // theta_d ~ N(0, 1), x_d ~ N(theta_d, 0.5^2): the mode is 0.8 x_d.
  std::vector<PriorTerm> terms;
  for (int d = 0; d < 6; ++d)
    terms.push_back(scalar(("t" + std::to_string(d)).c_str(), "normal", {{"mean", {0}}, {"sd", {1}}}));
  const auto x = [](std::size_t d) { return 0.4 * static_cast<double>(d) - 1; };
  const MapEstimate map =
      map_from_prior(posterior_of(Prior::from_terms(terms), [x](std::span<const double> theta) {
        double sum = 0;
        for (std::size_t d = 0; d < theta.size(); ++d) sum -= 2 * std::pow(x(d) - theta[d], 2);
        return sum;
      }));
  double best = -3 * std::log(2 * M_PI);
  for (std::size_t d = 0; d < 6; ++d) {
    EXPECT_NEAR(map.theta[d], 0.8 * x(d), 2e-3);  // the sd is 0.45
    best -= 0.4 * x(d) * x(d);
  }
  EXPECT_NEAR(map.log_density, best, 1e-5);
  EXPECT_EQ(map.agreement, 1.0);
  EXPECT_EQ(map.num_searches, 8u);
  EXPECT_TRUE(map.is_complete);
}

TEST_F(Map, IsTheModeInThetaSpace) {
  // log_normal(0.5, 0.8) and a constant ratio: the mode is exp(0.5 - 0.64) in theta, exp(0.5) in log theta.
  const Prior prior = Prior::from_terms({scalar("t", "log_normal", {{"location", {0.5}}, {"scale", {0.8}}})});
  const MapEstimate map = map_of(posterior_of(prior, [](std::span<const double>) { return 0.0; }));
  EXPECT_NEAR(map.theta[0], std::exp(0.5 - 0.64), 2e-3);
  EXPECT_GT(std::fabs(map.theta[0] - std::exp(0.5)), 0.5);
  EXPECT_EQ(map.agreement, 1.0);
}

TEST_F(Map, StaysInsideTheSupportWhenTheTopIsOnItsBound) {
  const Prior prior = Prior::from_terms(
      {scalar("a", "uniform", {{"low", {2}}, {"high", {3}}}), scalar("b", "exponential", {{"rate", {1}}})});
  const MapEstimate map =
      map_of(posterior_of(prior, [](std::span<const double> theta) { return 2 * theta[0]; }));
  EXPECT_TRUE(prior.contains(map.theta));
  // As near as the outermost of 2,000 draws.
  EXPECT_NEAR(map.theta[0], 3.0, 2e-3);
  EXPECT_NEAR(map.theta[1], 0.0, 2e-3);
  EXPECT_EQ(map.agreement, 1.0);
}

TEST_F(Map, IsNotLuredBeyondTheDraws) {
  // Right where the draws are, but rising without limit towards the bounds, as a network does in the logit of theta.
  const Prior prior = Prior::from_terms({scalar("t", "uniform", {{"low", {0}}, {"high", {1}}})});
  const auto ratio = [](std::span<const double> theta) {
    const double logit = std::log(theta[0] / (1 - theta[0]));
    return -0.5 * std::pow((theta[0] - 0.3) / 0.2, 2) + 2 * std::max(0.0, std::fabs(logit) - 12);
  };
  const MapEstimate map = map_of(posterior_of(prior, ratio));
  EXPECT_NEAR(map.theta[0], 0.3, 1e-3);
  EXPECT_EQ(map.agreement, 1.0);
  const std::vector<double> lure = {1 - 1e-12};
  EXPECT_GT(ratio(lure), map.log_density + 20);  // the density in the lure is higher
}

TEST_F(Map, SaysWhenSearchesEndElsewhere) {
  const Prior prior = Prior::from_terms({scalar("t", "uniform", {{"low", {-5}}, {"high", {5}}})});
  const auto two_modes = [](double right) {
    return [right](std::span<const double> theta) {
      const double a = (theta[0] + 3) / 0.3, b = (theta[0] - 3) / 0.3;
      return std::log(std::exp(-0.5 * a * a) + right * std::exp(-0.5 * b * b) + 1e-290);
    };
  };
  const MapEstimate unequal = map_of(posterior_of(prior, two_modes(0.6)));
  EXPECT_NEAR(unequal.theta[0], -3.0, 1e-3);
  EXPECT_LT(unequal.agreement, 1.0);
  EXPECT_GE(unequal.agreement, 0.25);
  // As high as each other, but not one point.
  EXPECT_LT(map_of(posterior_of(prior, two_modes(1.0))).agreement, 1.0);
  // A ridge: every point of it is as good as another.
  const Prior square = Prior::from_terms({scalar("a", "uniform", {{"low", {-5}}, {"high", {5}}}),
                                          scalar("b", "uniform", {{"low", {-5}}, {"high", {5}}})});
  EXPECT_LT(
      map_of(posterior_of(
                 square, [](std::span<const double> theta) { return -2 * std::pow(theta[0] - theta[1], 2); }))
          .agreement,
      0.5);
}

TEST_F(Map, WorksInTwentyCorrelatedDimensions) {
  constexpr std::size_t dim = 20;
  std::vector<PriorTerm> terms;
  for (std::size_t d = 0; d < dim; ++d)
    terms.push_back(scalar(("t" + std::to_string(d)).c_str(), "normal", {{"mean", {0}}, {"sd", {1}}}));
  // Sums of neighbours are known well: a precision matrix with a condition number of 400.
  const Posterior posterior = posterior_of(Prior::from_terms(terms), [](std::span<const double> theta) {
    double sum = 0;
    for (std::size_t d = 0; d + 1 < dim; ++d) sum -= 50 * std::pow(theta[d] + theta[d + 1] - 1, 2);
    return sum;
  });
  const MapEstimate map = map_from_prior(posterior);
  // The top solves (I + 100 A'A) theta = 100 A' 1: by Gauss-Seidel.
  std::vector<double> top(dim);
  for (int sweep = 0; sweep < 100000; ++sweep) {
    for (std::size_t d = 0; d < dim; ++d) {
      double right = 0, weight = 1;
      if (d > 0) right += 100 * (1 - top[d - 1]), weight += 100;
      if (d + 1 < dim) right += 100 * (1 - top[d + 1]), weight += 100;
      top[d] = right / weight;
    }
  }
  for (std::size_t d = 0; d < dim; ++d) EXPECT_NEAR(map.theta[d], top[d], 0.01);
  EXPECT_EQ(map.agreement, 1.0);
  EXPECT_LT(map.evaluations, 200000);
}

TEST_F(Map, StartsFromThePriorWithoutDraws) {
  const Prior prior = Prior::from_terms({scalar("t", "uniform", {{"low", {0}}, {"high", {1}}})});
  const Posterior narrow = posterior_of(
      prior, [](std::span<const double> theta) { return -0.5 * std::pow((theta[0] - 0.3) / 1e-3, 2); });
  const MapEstimate map = find_map(narrow, {}, run_);
  EXPECT_NEAR(map.theta[0], 0.3, 1e-5);
  const MapEstimate nowhere =
      find_map(posterior_of(prior, [](std::span<const double>) { return std::nan(""); }), {}, run_);
  EXPECT_EQ(nowhere.log_density, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(prior.contains(nowhere.theta));
}

TEST_F(Map, IsTheSameForAnyNumberOfThreadsAndEndsOnRequest) {
  const Prior prior = Prior::from_terms({scalar("t", "normal", {{"mean", {0}}, {"sd", {1}}})});
  const Posterior posterior =
      posterior_of(prior, [](std::span<const double> theta) { return -std::fabs(theta[0] - 0.2); });
  const Matrix<double> draws = draws_of(posterior);
  const MapEstimate first = find_map(posterior, draws, run_);
  for (const int threads : {1, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(find_map(posterior, draws, RunContext{.pool = pool}).theta, first.theta);
  }
  StopRequest stop;
  stop.request(15);
  RunContext run{.pool = pool_};
  run.stop = &stop;
  const MapEstimate stopped = find_map(posterior, draws, run);
  EXPECT_FALSE(stopped.is_complete);
  EXPECT_NEAR(stopped.theta[0], 0.2, 0.05);  // the best draw
}

TEST_F(Map, RefusesWhatHasNoMode) {
  const Posterior table = posterior_of(Prior::from_samples({"t"}, Matrix<double>(2, 1, {1, 2})),
                                       [](std::span<const double>) { return 0.0; });
  try {
    find_map(table, {}, run_);
    ADD_FAILURE() << "nothing was refused";
  } catch (const UnsupportedError& error) {
    EXPECT_STREQ(error.what(),
                 "map: the prior is given by samples and has no density, so the posterior has no mode; give "
                 "[parameters] as distributions, or leave map out");
  }
  const Prior prior = Prior::from_terms({scalar("t", "normal", {{"mean", {0}}, {"sd", {1}}})});
  const Posterior posterior = posterior_of(prior, [](std::span<const double>) { return 0.0; });
  try {
    find_map(posterior, Matrix<double>(3, 2), run_);
    ADD_FAILURE() << "nothing was refused";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "map: draws have 2 columns; the posterior has 1 parameters");
  }
}

}  // namespace
}  // namespace nrec
