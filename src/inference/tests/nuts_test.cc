#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "inference/tests/exact_posteriors.h"
#include "nrec/core/error.h"
#include "nrec/inference/sample.h"
#include "nrec/inference/summarise.h"

namespace nrec {
namespace {

using testing::constant_ratio;
using testing::gaussian_ratio;
using testing::normal_prior;
using testing::one_term;
using testing::uniform_prior;

double statistic(const PosteriorDraws& draws, const char* name) {
  const RecordValue& value = *draws.statistics.find(name);
  if (const auto* count = std::get_if<std::int64_t>(&value)) return static_cast<double>(*count);
  return std::get<double>(value);
}

/// Standard errors between the mean and sd of every column and the truth, at most.
double worst_deviation(const PosteriorDraws& draws, double mean, double sd) {
  double worst = 0.0;
  for (const MarginalSummary& row : summarise(draws)) {
    worst =
        std::max({worst, std::fabs(row.mean - mean) / row.mcse_mean, std::fabs(row.sd - sd) / row.mcse_sd});
  }
  return worst;
}

class Nuts : public ::testing::Test {
 protected:
  ThreadPool pool_{2};
  RunContext run_{.pool = pool_};
};

TEST_F(Nuts, ConstantRatioReturnsThePriorUnderEveryKindOfSupport) {
  struct Case {
    Prior prior;
    double mean, sd;
  };
  PriorTerm walled{{"t"}, "uniform", {{"low", {0}}, {"high", {5}}}, "identity"};
  const Case cases[] = {
      {uniform_prior(0, 5, 1), 2.5, 5 / std::sqrt(12.0)},
      {Prior::from_terms({walled}), 2.5, 5 / std::sqrt(12.0)},
      {one_term("exponential", {{"rate", {2.0}}}), 0.5, 0.5},
      {one_term("normal", {{"mean", {3e6}}, {"sd", {1e4}}}), 3e6, 1e4},
      {one_term("log_normal", {{"location", {-0.125}}, {"scale", {0.5}}}), 1.0,
       std::sqrt(std::exp(0.25) - 1)},
      {one_term("beta", {{"alpha", {0.5}}, {"beta", {2}}}), 0.2, std::sqrt(1 / (2.5 * 2.5 * 3.5))},
      {one_term("truncated_normal", {{"mean", {0}}, {"sd", {1}}, {"high", {0}}}), -std::sqrt(2 / M_PI),
       std::sqrt(1 - 2 / M_PI)}};
  for (const Case& c : cases) {
    const PosteriorDraws draws = sample_by_nuts(constant_ratio(c.prior), {}, run_);
    ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
    ASSERT_EQ(draws.size(), 10000u);
    EXPECT_GT(summarise(draws)[0].ess, 1500);
    EXPECT_LT(worst_deviation(draws, c.mean, c.sd), 4) << c.prior.description()[0];
    EXPECT_GT(worst_deviation(draws, c.mean + 0.15 * c.sd, c.sd),
              4);  // what is wrong by 15 % of the sd is seen
    for (std::size_t i = 0; i < draws.size(); ++i) ASSERT_TRUE(c.prior.contains(draws.theta.row(i)));
  }
}

TEST_F(Nuts, DrawsDoNotPileUpAtABound) {
  // The posterior is largest on the bound at 1: density proportional to exp(3 theta) on [0, 1].
  const auto tilted = [](MatrixView<const double> theta, std::span<double> r, MatrixView<double> d) {
    for (std::size_t i = 0; i < theta.rows; ++i) {
      r[i] = 3 * theta(i, 0);
      d(i, 0) = 3;
    }
  };
  const PosteriorDraws draws = sample_by_nuts(testing::exact(uniform_prior(0, 1, 1), tilted), {}, run_);
  ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
  const auto cdf = [](double t) { return std::expm1(3 * t) / std::expm1(3.0); };
  const double ess = std::get<std::vector<double>>(*draws.statistics.find("ess_tail"))[0];
  for (const double edge : {0.01, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    double below = 0;
    for (std::size_t i = 0; i < draws.size(); ++i) below += draws.theta(i, 0) < edge;
    const double p = cdf(edge);
    EXPECT_NEAR(below / 10000, p, 4 * std::sqrt(p * (1 - p) / std::min(ess, 10000.0))) << edge;
  }
  EXPECT_EQ(statistic(draws, "divergences"), 0);
}

TEST_F(Nuts, CorrelatedGaussiansHaveTheirMoments) {
  for (const std::size_t dim : {1u, 2u, 10u}) {
    const double correlation = dim == 1 ? 0.0 : 0.8;
    const PosteriorDraws draws =
        sample_by_nuts(gaussian_ratio(normal_prior(0, 1e3, dim), 0.3, 2.0, correlation), {}, run_);
    ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
    EXPECT_LT(worst_deviation(draws, 0.3, 2.0), 4) << dim;
    EXPECT_GT(worst_deviation(draws, 0.3, 2.2), 4);  // ten per cent of the sd are seen
    if (dim == 1) continue;
    double product = 0;
    for (std::size_t i = 0; i < draws.size(); ++i)
      product += (draws.theta(i, 0) - 0.3) * (draws.theta(i, 1) - 0.3) / 10000;
    EXPECT_NEAR(product, 4 * correlation, 0.4);
  }
}

TEST_F(Nuts, HalfOpenSupportHasItsMoments) {
  // log theta ~ N(0, 1) and log x = log theta + noise of sd 0.5 with x_o = 2: log theta given x_o is N(0.8 log 2, 0.2).
  const auto ratio = [](MatrixView<const double> theta, std::span<double> r, MatrixView<double> d) {
    for (std::size_t i = 0; i < theta.rows; ++i) {
      const double z = (std::log(theta(i, 0)) - std::log(2.0)) / 0.5;
      r[i] = -0.5 * z * z;
      d(i, 0) = -z / 0.5 / theta(i, 0);
    }
  };
  const PosteriorDraws draws = sample_by_nuts(
      testing::exact(one_term("log_normal", {{"location", {0}}, {"scale", {1}}}), ratio), {}, run_);
  ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
  const double mean = std::exp(0.8 * std::log(2.0) + 0.1);
  EXPECT_LT(worst_deviation(draws, mean, mean * std::sqrt(std::exp(0.2) - 1)), 4);
}

TEST_F(Nuts, NarrowPosteriorsHaveTheirMoments) {
  // 1e-4 of the prior's width.
  for (const std::size_t dim : {1u, 2u, 3u, 5u}) {
    const PosteriorDraws draws =
        sample_by_nuts(gaussian_ratio(uniform_prior(0, 1, dim), 0.3, 1e-4), {}, run_);
    ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
    EXPECT_LT(worst_deviation(draws, 0.3, 1e-4), 4) << dim;
    EXPECT_LT(statistic(draws, "evaluations"),
              1.6e6);  // a million of them from the prior to the posterior in five dimensions
  }
}

TEST_F(Nuts, SaysThatAFunnelDiverges) {
  const PosteriorDraws draws = sample_by_nuts(testing::funnel(9), {}, run_);
  EXPECT_GT(statistic(draws, "divergences"), 0);
  EXPECT_NE(draws.message.find("transitions diverged"), std::string::npos) << draws.message;
  const PosteriorDraws tame = sample_by_nuts(gaussian_ratio(normal_prior(0, 1, 2), 0.3, 1.0), {}, run_);
  EXPECT_EQ(statistic(tame, "divergences"), 0);
  EXPECT_EQ(tame.message.find("diverged"), std::string::npos) << tame.message;
}

TEST_F(Nuts, SameDrawsForAnyNumberOfThreadsAndExactCounts) {
  SamplingOptions options;
  options.num_samples = 250;  // not a multiple of the chains
  const Posterior posterior = gaussian_ratio(normal_prior(0, 10, 3), 0.3, 1.0, 0.5);
  const PosteriorDraws first = sample_by_nuts(posterior, options, run_);
  EXPECT_EQ(first.size(), 250u);
  EXPECT_EQ(first.log_ratio.size(), 250u);
  EXPECT_EQ(first.num_chains, 1u);
  for (const int threads : {1, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(sample_by_nuts(posterior, options, RunContext{.pool = pool}).theta, first.theta);
  }
  RunContext other{.pool = pool_};
  other.seed = 2;
  EXPECT_NE(sample_by_nuts(posterior, options, other).theta, first.theta);
  EXPECT_EQ(first.status, SamplingStatus::complete) << first.message;  // judged by 250 iterations, not by 11
  EXPECT_EQ(statistic(first, "thinning"), 23);
  EXPECT_EQ(statistic(first, "transitions"), 24 * 11 * 23);
  EXPECT_GT(summarise(first)[0].ess, 150);
  options.num_samples = 1;
  EXPECT_EQ(sample_by_nuts(posterior, options, run_).size(), 1u);
}

TEST_F(Nuts, KeepsNumbersOfEveryDraw) {
  SamplingOptions options;
  options.num_samples = 240;
  const PosteriorDraws draws =
      sample_by_nuts(gaussian_ratio(normal_prior(0, 10, 2), 0.3, 1.0), options, run_);
  std::vector<std::string> names;
  for (const auto& [name, values] : draws.per_draw) {
    names.push_back(name);
    EXPECT_EQ(values.size(), 240u) << name;
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"acceptance_rate", "tree_depth", "n_steps", "energy", "diverging"}));
  for (const double steps : draws.per_draw[2].second) ASSERT_GE(steps, 1);
  EXPECT_EQ(draws.num_chains, 24u);
  EXPECT_GT(statistic(draws, "acceptance_rate"), 0.6);
  EXPECT_GT(statistic(draws, "step_size"), 0.1);
  EXPECT_GT(statistic(draws, "tree_depth"), 0.5);
  EXPECT_EQ(statistic(draws, "reached_max_treedepth"), 0);
}

TEST_F(Nuts, EndsOnBudgetsStopsAndEmptySupport) {
  const Posterior posterior = constant_ratio(uniform_prior(0, 1, 1));
  SamplingOptions options;
  for (const std::int64_t budget : {1, 23, 1500, 2500, 105000, 120000}) {
    options.max_evaluations = budget;
    const PosteriorDraws partial = sample_by_nuts(posterior, options, run_);
    EXPECT_EQ(partial.status, SamplingStatus::budget_spent) << budget;
    EXPECT_LE(statistic(partial, "evaluations"), static_cast<double>(budget));
    EXPECT_LT(partial.size(), 10000u);
    EXPECT_NE(
        partial.message.find(budget < 2500 ? "before the first iteration" : "the rest would take about"),
        std::string::npos)
        << partial.message;
  }
  EXPECT_GT(sample_by_nuts(posterior, options, run_).size(), 100u);  // what 120,000 evaluations gave
  options = {};
  options.max_seconds = 1e-9;
  EXPECT_EQ(sample_by_nuts(posterior, options, run_).status, SamplingStatus::budget_spent);
  StopRequest stop;
  stop.request(15);
  RunContext run{.pool = pool_};
  run.stop = &stop;
  EXPECT_EQ(sample_by_nuts(posterior, {}, run).status, SamplingStatus::stopped);
  const auto nowhere = [](MatrixView<const double>, std::span<double> r, MatrixView<double>) {
    std::fill(r.begin(), r.end(), std::nan(""));
  };
  EXPECT_EQ(sample_by_nuts(testing::exact(uniform_prior(0, 1, 1), nowhere), {}, run_).status,
            SamplingStatus::no_support);
}

TEST_F(Nuts, RefusesWhatItCannotFollow) {
  const auto refusal = [&](const Posterior& posterior) {
    try {
      sample_by_nuts(posterior, {}, run_);
    } catch (const UnsupportedError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto flat = [](MatrixView<const double>, std::span<double> r) { std::fill(r.begin(), r.end(), 0.0); };
  EXPECT_EQ(
      refusal(Posterior::from_log_ratio(uniform_prior(0, 1, 1), flat)),
      "sampling: method = \"nuts\" needs the gradient of the log ratio, but it was given without one; use "
      "method = \"slice\"");
  EXPECT_EQ(
      refusal(constant_ratio(Prior::from_samples({"t"}, Matrix<double>(3, 1, {0.1, 0.2, 0.3})))),
      "sampling: method = \"nuts\" needs the density of the prior, but the prior is given by samples; use "
      "method = \"rejection\"");
  SamplingOptions options;
  options.method = "nuts";
  EXPECT_EQ(sample(constant_ratio(uniform_prior(0, 1, 1)), options, run_).method, "nuts");
}

}  // namespace
}  // namespace nrec
