// What every sampler must do: the right distribution at bounds, in modes, in narrow and in far places, or a status that says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "inference/tests/exact_posteriors.h"
#include "nrec/inference/sample.h"
#include "nrec/inference/summarise.h"

namespace nrec {
namespace {

using testing::constant_ratio;
using testing::exact;
using testing::gaussian_ratio;
using testing::one_term;
using testing::uniform_prior;

// sqrt(n) times the Kolmogorov-Smirnov distance, at the level 1e-5: some hundred distances are judged in this file.
constexpr double kCritical = 2.47;

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

double smallest_ess(const PosteriorDraws& draws) {
  double least = static_cast<double>(draws.size());
  for (const MarginalSummary& row : summarise(draws)) least = std::min(least, row.ess);
  if (const RecordValue* tail = draws.statistics.find("ess_tail")) {
    for (const double value : std::get<std::vector<double>>(*tail)) least = std::min(least, value);
  }
  return least;
}

double statistic(const PosteriorDraws& draws, const char* name) {
  const RecordValue& value = *draws.statistics.find(name);
  if (const auto* count = std::get_if<std::int64_t>(&value)) return static_cast<double>(*count);
  return std::get<double>(value);
}

/// Kolmogorov-Smirnov distance of the first column from `cdf`, times the root of the effective number of draws.
double ks(const PosteriorDraws& draws, const std::function<double(double)>& cdf) {
  std::vector<double> values;
  for (std::size_t i = 0; i < draws.size(); ++i) values.push_back(draws.theta(i, 0));
  std::sort(values.begin(), values.end());
  double distance = 0.0;
  const double n = static_cast<double>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double p = cdf(values[i]);
    distance = std::max({distance, p - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - p});
  }
  return distance * std::sqrt(smallest_ess(draws));
}

class EverySampler : public ::testing::TestWithParam<std::string> {
 protected:
  PosteriorDraws draw(const Posterior& posterior, std::int64_t max_evaluations = 20000000) {
    SamplingOptions options;
    options.method = GetParam();
    options.max_evaluations = max_evaluations;
    options.max_seconds = 120;
    return sample(posterior, options, run_);
  }
  bool proposes_from_prior() const { return GetParam() == "rejection" || GetParam() == "importance"; }

  ThreadPool pool_{2};
  RunContext run_{.pool = pool_};
};

INSTANTIATE_TEST_SUITE_P(Samplers, EverySampler,
                         ::testing::Values("rejection", "importance", "slice", "nuts", "auto"),
                         [](const auto& sampler) { return sampler.param; });

/// A prior of one parameter with its distribution function.
struct KnownPrior {
  Prior prior;
  std::function<double(double)> cdf;
};

std::vector<KnownPrior> known_priors() {
  const PriorTerm walled{{"t"}, "uniform", {{"low", {-1}}, {"high", {4}}}, "identity"};
  const auto uniform = [](double t) { return (t + 1) / 5; };
  return {{one_term("uniform", {{"low", {-1}}, {"high", {4}}}), uniform},
          {Prior::from_terms({walled}), uniform},
          {one_term("exponential", {{"rate", {2.0}}}), [](double t) { return -std::expm1(-2 * t); }},
          {one_term("log_normal", {{"location", {-0.125}}, {"scale", {0.5}}}),
           [](double t) { return normal_cdf((std::log(t) + 0.125) / 0.5); }},
          {one_term("truncated_normal", {{"mean", {0}}, {"sd", {1}}, {"high", {0}}}),
           [](double t) { return 2 * normal_cdf(t); }},
          {one_term("beta", {{"alpha", {0.5}}, {"beta", {1}}}), [](double t) { return std::sqrt(t); }},
          {one_term("normal", {{"mean", {3e6}}, {"sd", {1e4}}}),
           [](double t) { return normal_cdf((t - 3e6) / 1e4); }}};
}

TEST_P(EverySampler, ReturnsThePriorForAConstantRatio) {
  for (const KnownPrior& known : known_priors()) {
    const PosteriorDraws draws = draw(constant_ratio(known.prior));
    ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
    ASSERT_EQ(draws.size(), 10000u);
    EXPECT_GT(smallest_ess(draws), 1500);
    EXPECT_LT(ks(draws, known.cdf), kCritical) << known.prior.description()[0];
    const auto wrong = [&](double t) { return std::pow(std::max(0.0, known.cdf(t)), 1.2); };
    EXPECT_GT(ks(draws, wrong), kCritical) << known.prior.description()[0];
    for (std::size_t i = 0; i < draws.size(); ++i) ASSERT_TRUE(known.prior.contains(draws.theta.row(i)));
  }
}

TEST_P(EverySampler, HasTheExactMassAtABoundInsideAndNothingOutside) {
  // The density is exp(30 theta) on [0, 1], largest on a bound, as posteriors of badly chosen priors are.
  constexpr double kRate = 30.0;
  const auto tilted = [](MatrixView<const double> theta, std::span<double> r, MatrixView<double> d) {
    for (std::size_t i = 0; i < theta.rows; ++i) {
      r[i] = kRate * theta(i, 0);
      d(i, 0) = kRate;
    }
  };
  for (const char* transform : {"auto", "identity"}) {
    const Prior prior = Prior::from_terms({{{"t"}, "uniform", {{"low", {0}}, {"high", {1}}}, transform}});
    const PosteriorDraws draws = draw(exact(prior, tilted));
    ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
    const double n = static_cast<double>(draws.size());
    for (const double distance : {1e-4, 1e-3, 1e-2, 0.1}) {
      double inside = 0;
      for (std::size_t i = 0; i < draws.size(); ++i) inside += draws.theta(i, 0) > 1 - distance;
      const double p = std::expm1(-kRate * distance) / std::expm1(-kRate);
      const double error = std::sqrt(p * (1 - p) / smallest_ess(draws));
      EXPECT_NEAR(inside / n, p, 4 * error) << distance << " " << transform;
    }
    for (std::size_t i = 0; i < draws.size(); ++i) ASSERT_TRUE(prior.contains(draws.theta.row(i)));
  }
}

/// Two normal modes under a flat prior on [-5, 5].
Posterior two_modes(std::size_t dim, double distance, double sd, double weight_above) {
  return exact(uniform_prior(-5, 5, dim), [=](MatrixView<const double> theta, std::span<double> r,
                                              MatrixView<double> d) {
    for (std::size_t i = 0; i < theta.rows; ++i) {
      double above = std::log(weight_above), below = std::log(1 - weight_above);
      for (const double t : theta.row(i)) {
        above -= 0.5 * std::pow((t - distance) / sd, 2);
        below -= 0.5 * std::pow((t + distance) / sd, 2);
      }
      const double top = std::max(above, below);
      r[i] = top + std::log(std::exp(above - top) + std::exp(below - top));
      const double share = std::exp(above - r[i]);
      for (std::size_t j = 0; j < theta.cols; ++j)
        d(i, j) = -(share * (theta(i, j) - distance) + (1 - share) * (theta(i, j) + distance)) / (sd * sd);
    }
  });
}

TEST_P(EverySampler, GivesModesTheirWeights) {
  struct Modes {
    std::size_t dim;
    double distance, sd, weight;
  };
  for (const Modes& m : {Modes{1, 3, 0.01, 0.78}, Modes{1, 3, 0.05, 0.974}, Modes{1, 1, 0.05, 0.5},
                         Modes{2, 1, 0.05, 0.78}, Modes{5, 1, 0.05, 0.78}, Modes{5, 1, 0.05, 0.974}}) {
    if (proposes_from_prior() && m.dim > 1) continue;
    const PosteriorDraws draws = draw(two_modes(m.dim, m.distance, m.sd, m.weight));
    ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
    double above = 0;
    for (std::size_t i = 0; i < draws.size(); ++i) above += draws.theta(i, 0) > 0;
    const double share = above / static_cast<double>(draws.size());
    const double error = std::sqrt(m.weight * (1 - m.weight) / smallest_ess(draws));
    EXPECT_NEAR(share, m.weight, 3 * error) << m.dim << " " << m.weight;
    EXPECT_LT(error, 0.018);  // so 5 % too much or too little in a mode would be seen
  }
}

/// Modes of equal volume, long where the other is short: jumps from one to the other hardly ever land.
Posterior crossed_modes() {
  constexpr double kLong = 0.5, kShort = 0.01;
  return exact(uniform_prior(-5, 5, 6),
               [](MatrixView<const double> theta, std::span<double> r, MatrixView<double> d) {
                 for (std::size_t i = 0; i < theta.rows; ++i) {
                   const double centre = theta(i, 0) + theta(i, 1) > 0 ? 2 : -2;
                   r[i] = 0;
                   for (std::size_t j = 0; j < theta.cols; ++j) {
                     const double sd = (j % 2 == 0) == (centre > 0) ? kLong : kShort;
                     const double z = (theta(i, j) - centre) / sd;
                     r[i] -= 0.5 * z * z;
                     d(i, j) = -z / sd;
                   }
                 }
               });
}

TEST_P(EverySampler, SaysSoWhereModesAreNotConnected) {
  if (GetParam() == "auto") GTEST_SKIP() << "chooses one of the others";
  SamplingOptions options;
  options.method = GetParam();
  options.num_samples = 1000;
  options.max_evaluations = 5000000;
  const PosteriorDraws draws = sample(crossed_modes(), options, run_);
  if (GetParam() == "rejection") {
    EXPECT_EQ(draws.status, SamplingStatus::budget_spent) << draws.message;
  } else if (GetParam() == "importance") {
    EXPECT_EQ(draws.status, SamplingStatus::weights_unreliable) << draws.message;
  } else {
    EXPECT_EQ(draws.status, SamplingStatus::chains_disagree) << draws.message;
    EXPECT_NE(
        draws.message.find("(above 1.05): the chains disagree, perhaps on the weights of separate modes"),
        std::string::npos)
        << draws.message;
  }
}

TEST_P(EverySampler, FindsNarrowPosteriorsOrSaysThatItsBudgetIsSpent) {
  for (const std::size_t dim : {1u, 2u, 3u, 5u}) {
    const Posterior posterior = gaussian_ratio(uniform_prior(0, 1, dim), 0.3, 1e-4);
    const PosteriorDraws draws = draw(posterior, proposes_from_prior() ? 1000000 : 20000000);
    if (proposes_from_prior()) {
      EXPECT_EQ(draws.status,
                GetParam() == "rejection" ? SamplingStatus::budget_spent : SamplingStatus::weights_unreliable)
          << draws.message;
      EXPECT_LT(draws.size(), 1000u);
      if (draws.size() == 0) {
        EXPECT_NE(draws.message.find("far narrower than the prior"), std::string::npos) << draws.message;
      }
      continue;
    }
    ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
    for (const MarginalSummary& row : summarise(draws)) {
      EXPECT_NEAR(row.mean, 0.3, 4 * row.mcse_mean) << dim;
      EXPECT_NEAR(row.sd, 1e-4, 4 * row.mcse_sd) << dim;
      EXPECT_LT(row.mcse_mean, 4e-6);
    }
  }
}

TEST_P(EverySampler, EndsForAnObservationFarOutside) {
  // theta ~ N(0, 1), x ~ N(theta, 0.01^2), x_o = 100: the posterior is at 99.99, a hundred sd away from every prior draw.
  const PosteriorDraws draws = draw(gaussian_ratio(testing::normal_prior(0, 1, 2), 100.0, 0.01), 3000000);
  EXPECT_LE(statistic(draws, "evaluations"), 3000000.0);
  if (proposes_from_prior()) {
    EXPECT_NE(draws.status, SamplingStatus::complete) << draws.message;
    return;
  }
  const double variance = 1 / (1 + 1e4);
  if (draws.status != SamplingStatus::complete) return;
  for (const MarginalSummary& row : summarise(draws)) {
    EXPECT_NEAR(row.mean, 1e6 * variance, 4 * row.mcse_mean) << draws.message;
    EXPECT_NEAR(row.sd, std::sqrt(variance), 4 * row.mcse_sd) << draws.message;
  }
}

TEST_P(EverySampler, CountsRatiosThatAreNotFiniteAsZeroDensityAndReportsThem) {
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const auto half = [value](MatrixView<const double> theta, std::span<double> r, MatrixView<double> d) {
      for (std::size_t i = 0; i < theta.rows; ++i) {
        r[i] = theta(i, 0) < 0.5 ? value : 0.0;
        d(i, 0) = 0.0;
      }
    };
    const PosteriorDraws draws = draw(exact(uniform_prior(0, 1, 1), half));
    ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
    for (std::size_t i = 0; i < draws.size(); ++i) ASSERT_GE(draws.theta(i, 0), 0.5);
    EXPECT_LT(ks(draws, [](double t) { return 2 * t - 1; }), kCritical);
    EXPECT_GT(statistic(draws, "non_finite_log_ratios"), 1000);
  }
  const auto nowhere = [](MatrixView<const double>, std::span<double> r, MatrixView<double>) {
    std::fill(r.begin(), r.end(), std::nan(""));
  };
  EXPECT_EQ(draw(exact(uniform_prior(0, 1, 1), nowhere), 300000).status, SamplingStatus::no_support);
}

TEST_P(EverySampler, NeverSpendsMoreThanItsEvaluations) {
  for (const std::int64_t budget : {1, 100, 3000, 60000, 150000, 400000}) {
    std::int64_t rows = 0;
    const auto counted = [&rows](MatrixView<const double> theta, std::span<double> r, MatrixView<double> d) {
      rows += static_cast<std::int64_t>(theta.rows);
      for (std::size_t i = 0; i < theta.rows; ++i) {
        r[i] = d(i, 0) = d(i, 1) = 0.0;
        for (const double t : theta.row(i)) r[i] -= 0.5 * std::pow((t - 0.3) / 1e-3, 2);
        for (std::size_t j = 0; j < 2; ++j) d(i, j) = -(theta(i, j) - 0.3) / 1e-6;
      }
    };
    const PosteriorDraws draws = draw(exact(uniform_prior(0, 1, 2), counted), budget);
    EXPECT_TRUE(draws.status != SamplingStatus::complete || budget == 400000);
    EXPECT_LE(statistic(draws, "evaluations"), static_cast<double>(budget));
    // Log ratios of the draws that are handed over come on top.
    EXPECT_LE(rows, budget + static_cast<std::int64_t>(draws.size())) << draws.message;
  }
}

TEST(SamplersOfTables, GiveEveryRowOfADiscretePriorItsProbability) {
  // A grid of 20 values, each 50 times in the table; the ratio doubles from one value to the next but for the last ten.
  constexpr std::size_t kValues = 20;
  Matrix<double> table(kValues * 50, 1);
  for (std::size_t i = 0; i < table.rows(); ++i) table(i, 0) = static_cast<double>(i % kValues);
  const auto log_ratio = [](double t) { return std::log(2.0) * std::min(t, 10.0) * 0.5; };
  const Posterior posterior = Posterior::from_log_ratio(
      Prior::from_samples({"t"}, table), [&](MatrixView<const double> theta, std::span<double> r) {
        for (std::size_t i = 0; i < theta.rows; ++i) r[i] = log_ratio(theta(i, 0));
      });
  double total = 0.0;
  for (std::size_t v = 0; v < kValues; ++v) total += std::exp(log_ratio(static_cast<double>(v)));
  ThreadPool pool(2);
  for (const char* method : {"rejection", "importance", "auto"}) {
    SamplingOptions options;
    options.method = method;
    const PosteriorDraws draws = sample(posterior, options, RunContext{.pool = pool});
    ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
    std::map<double, double> counts;
    for (std::size_t i = 0; i < draws.size(); ++i) counts[draws.theta(i, 0)] += 1.0;
    ASSERT_LE(counts.size(), kValues);
    double chi2 = 0.0;
    for (std::size_t v = 0; v < kValues; ++v) {
      const double value = static_cast<double>(v);
      const double expected = 10000 * std::exp(log_ratio(value)) / total;
      chi2 += (counts[value] - expected) * (counts[value] - expected) / expected;
    }
    EXPECT_LT(chi2, 19 + 4 * std::sqrt(2 * 19.0)) << method;
  }
}

}  // namespace
}  // namespace nrec
