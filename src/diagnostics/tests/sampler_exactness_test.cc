// Every sampler with the exact log ratio in place of a network: simulation-based calibration, C2ST against exact draws, and a
// sampler that is wrong by a little as the control.
#include <gtest/gtest.h>

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "nrec/diagnostics/c2st.h"
#include "nrec/inference/sample_many.h"
#include "nrec/tasks/task.h"

namespace nrec {
namespace {

constexpr std::size_t kDraws = 99;  // per data set: ranks 0 .. 99
constexpr std::size_t kBins = 20;   // of five ranks each
constexpr std::size_t kCases = 12;  // pairs of task and sampler
constexpr double kFalseAlarms = 1e-3;  // of the whole suite, shared by Bonferroni among its tests

/// Data sets per task and sampler; the full study is 500.
std::size_t num_data_sets() {
  const char* text = std::getenv("NREC_CALIBRATION_DATA_SETS");
  return text ? static_cast<std::size_t>(std::atoi(text)) : 200;
}

/// The exact posterior of `task` for x_o.
Posterior exact_posterior(const Task& task, std::vector<double> x_o) {
  return Posterior::from_log_ratio(task.prior(),
                                   [&task, x_o = std::move(x_o)](MatrixView<const double> theta, std::span<double> out) {
                                     task.log_likelihood(theta, x_o, out);
                                   });
}

SamplingOptions options_of(const std::string& method, std::int64_t num_samples) {
  SamplingOptions options;
  options.method = method;
  options.num_samples = num_samples;
  return options;
}

/// Ranks of the true parameters among their posterior draws. `stretch` makes the draws of each data set wider or narrower
/// about their mean: the control.
struct Ranks {
  std::vector<std::vector<std::size_t>> of_parameter;  // [D][data sets]
  std::size_t incomplete = 0;

  Ranks(const Task& task, const std::string& method, std::size_t num_sets, double stretch = 1.0)
      : of_parameter(task.dim_theta()) {
    ThreadPool pool;
    const SimulationSet truth = simulate_from_prior(task.prior(), task.simulator(), num_sets, 77, pool);
    const std::vector<PosteriorDraws> all = sample_many(
        num_sets,
        [&](std::size_t i, const RunContext&) {
          const auto x = truth.x.row(i);
          return exact_posterior(task, {x.begin(), x.end()});
        },
        options_of(method, kDraws), {.pool = pool, .seed = 78});
    for (std::size_t i = 0; i < num_sets; ++i) {
      incomplete += all[i].size() < kDraws;
      for (std::size_t d = 0; d < of_parameter.size(); ++d) {
        double mean = 0.0;
        for (std::size_t s = 0; s < all[i].size(); ++s)
          mean += all[i].theta(s, d) / static_cast<double>(all[i].size());
        std::size_t rank = 0;
        for (std::size_t s = 0; s < all[i].size(); ++s)
          rank += mean + stretch * (all[i].theta(s, d) - mean) < truth.theta(i, d);
        of_parameter[d].push_back(rank);
      }
    }
  }
};

/// Probability of a chi-squared as large under uniform ranks.
double chi_squared_p(const std::vector<std::size_t>& ranks) {
  std::vector<double> counts(kBins);
  for (const std::size_t rank : ranks) counts[rank * kBins / (kDraws + 1)] += 1.0;
  const double expected = static_cast<double>(ranks.size()) / kBins;
  double chi2 = 0.0;
  for (const double count : counts) chi2 += (count - expected) * (count - expected) / expected;
  return boost::math::cdf(boost::math::complement(boost::math::chi_squared(kBins - 1), chi2));
}

/// Largest distance of the ranks' distribution function from the uniform one, in units in which
/// exceeding t has a probability below 2 exp(-2 t^2). Source [Massart1990]
double largest_step(const std::vector<std::size_t>& ranks) {
  std::vector<double> below(kDraws + 1);
  for (const std::size_t rank : ranks) below[rank] += 1.0 / static_cast<double>(ranks.size());
  double sum = 0.0, largest = 0.0;
  for (std::size_t r = 0; r <= kDraws; ++r) {
    sum += below[r];
    largest = std::max(largest, std::abs(sum - static_cast<double>(r + 1) / (kDraws + 1)));
  }
  return largest * std::sqrt(static_cast<double>(ranks.size()));
}

/// How far the spread of the ranks, as normal scores pooled over parameters, is from that of uniform ones, in standard errors:
/// a sampler that is too narrow everywhere makes it positive.
double spread_z(const Ranks& ranks) {
  std::vector<double> square(kDraws + 1);
  double expected = 0.0;
  for (std::size_t r = 0; r <= kDraws; ++r) {
    const double score =
        boost::math::quantile(boost::math::normal(), (static_cast<double>(r) + 0.5) / (kDraws + 1));
    square[r] = score * score;
    expected += square[r] / (kDraws + 1);
  }
  const std::size_t n = ranks.of_parameter[0].size();
  double sum = 0.0, sum_of_squares = 0.0;  // over data sets: their parameters are not independent
  for (std::size_t i = 0; i < n; ++i) {
    double value = 0.0;
    for (const auto& of_parameter : ranks.of_parameter)
      value += square[of_parameter[i]] / static_cast<double>(ranks.of_parameter.size());
    sum += value - expected;
    sum_of_squares += (value - expected) * (value - expected);
  }
  const auto count = static_cast<double>(n);
  return sum / count / std::sqrt((sum_of_squares / count - sum * sum / count / count) / count);
}

struct Case {
  std::string task, method;
};

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.task + "_" + info.param.method; }

class Calibration : public testing::TestWithParam<Case> {};

TEST_P(Calibration, RanksAreUniform) {
  const std::unique_ptr<Task> task = make_task(GetParam().task);
  const Ranks ranks(*task, GetParam().method, num_data_sets());
  // Incomplete draws would be missing at random only if the sampler failed at random.
  EXPECT_EQ(ranks.incomplete, 0u);
  EXPECT_LT(std::abs(spread_z(ranks)), 4.0);
  const double tests = 2.0 * static_cast<double>(task->dim_theta()) * kCases;
  const double p = kFalseAlarms / tests;
  for (std::size_t d = 0; d < task->dim_theta(); ++d) {
    EXPECT_GT(chi_squared_p(ranks.of_parameter[d]), p) << task->parameter_names()[d];
    EXPECT_LT(largest_step(ranks.of_parameter[d]), std::sqrt(0.5 * std::log(2.0 / p))) << task->parameter_names()[d];
  }
}

INSTANTIATE_TEST_SUITE_P(
    ExactRatios, Calibration,
    testing::Values(Case{"gaussian_linear", "slice"}, Case{"gaussian_linear", "nuts"},
                    Case{"gaussian_linear_uniform", "slice"}, Case{"gaussian_linear_uniform", "nuts"},
                    Case{"two_moons", "rejection"}, Case{"two_moons", "slice"}, Case{"two_moons", "importance"},
                    Case{"gaussian_mixture", "rejection"}, Case{"gaussian_mixture", "slice"},
                    Case{"gaussian_mixture", "importance"}, Case{"slcp", "slice"}, Case{"slcp", "importance"}),
    name_of);

TEST(CalibrationControl, ASamplerThatIsFivePercentTooNarrowFails) {
  const std::unique_ptr<Task> task = make_task("gaussian_linear");
  EXPECT_LT(std::abs(spread_z(Ranks(*task, "slice", 500))), 4.0);
  EXPECT_GT(spread_z(Ranks(*task, "slice", 500, 0.95)), 4.0);
  EXPECT_LT(spread_z(Ranks(*task, "slice", 500, 1.05)), -4.0);
}

TEST(CalibrationControl, ASamplerThatIsTwentyPercentTooNarrowFailsInEveryParameter) {
  const std::unique_ptr<Task> task = make_task("gaussian_linear");
  const Ranks narrow(*task, "slice", 1000, 0.8);
  for (const auto& ranks : narrow.of_parameter) EXPECT_LT(chi_squared_p(ranks), 1e-3);
}

class AgainstExactDraws : public testing::TestWithParam<Case> {};

TEST_P(AgainstExactDraws, AClassifierCannotTellThem) {
  const std::unique_ptr<Task> task = make_task(GetParam().task);
  ThreadPool pool;
  const SimulationSet truth = simulate_from_prior(task->prior(), task->simulator(), 1, 5, pool);
  const std::vector<double> x_o(truth.x.row(0).begin(), truth.x.row(0).end());
  const Matrix<double> exact = task->reference_posterior(x_o, 10000, 6);
  const PosteriorDraws draws =
      sample(exact_posterior(*task, x_o), options_of(GetParam().method, 10000), {.pool = pool, .seed = 7});
  ASSERT_EQ(draws.status, SamplingStatus::complete) << draws.message;
  const C2stSummary summary = c2st(exact, draws.theta, {}, pool);
  EXPECT_NEAR(summary.accuracy, 0.5, 0.01) << draws.message;
}

INSTANTIATE_TEST_SUITE_P(ExactRatios, AgainstExactDraws,
                         testing::Values(Case{"gaussian_linear", "slice"}, Case{"gaussian_linear", "nuts"},
                                         Case{"gaussian_linear_uniform", "slice"},
                                         Case{"gaussian_linear_uniform", "nuts"}, Case{"two_moons", "rejection"},
                                         Case{"two_moons", "slice"}, Case{"two_moons", "importance"},
                                         Case{"gaussian_mixture", "rejection"}, Case{"gaussian_mixture", "slice"},
                                         Case{"gaussian_mixture", "importance"}),
                         name_of);

}  // namespace
}  // namespace nrec
