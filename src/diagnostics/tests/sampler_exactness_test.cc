// Every sampler with the exact log ratio in place of a network: simulation-based calibration, C2ST against exact draws, and
// draws that are wrong by 5 % as the control.
//
// NREC_CALIBRATION_DATA_SETS=500 makes it the full study (half an hour); NREC_CALIBRATION_TABLE=file appends its figures as CSV.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nrec/core/log_sink.h"
#include "nrec/diagnostics/c2st.h"
#include "nrec/inference/sample_many.h"
#include "nrec/tasks/benchmark_files.h"
#include "nrec/tasks/task.h"
#include "reference_samples.h"

namespace nrec {
namespace {

constexpr std::size_t kDraws = 99;  // per data set: ranks 0 .. 99
constexpr std::size_t kFullStudy = 500;
constexpr std::size_t kControl = 2000;  // exact draws are cheap
constexpr std::size_t kFewDataSets = 10,
                      kMoreDataSets = 30;  // without the full study: in many and in two dimensions
constexpr double kFalseAlarms = 1e-3;      // of all ranks' tests together, shared by Bonferroni among them
constexpr double kGaussianVariance = 0.1;  // of the noise of gaussian_linear and gaussian_linear_uniform

bool is_full_study() { return std::getenv("NREC_CALIBRATION_DATA_SETS") != nullptr; }

std::size_t num_data_sets(const Task& task) {
  if (is_full_study()) return static_cast<std::size_t>(std::atoi(std::getenv("NREC_CALIBRATION_DATA_SETS")));
  return task.dim_theta() > 2 ? kFewDataSets : kMoreDataSets;
}

/// One line of the study's table, where one is asked for.
template <class... Cells>
void write_row(const char* format, Cells... cells) {
  const char* path = std::getenv("NREC_CALIBRATION_TABLE");
  if (!path) return;
  char line[512];
  std::snprintf(line, sizeof line, format, cells...);
  std::ofstream(path, std::ios::app) << line << "\n";
}

/// d log p(x_o | theta) / d theta: exact for the Gaussian tasks, central differences for the others. The no-U-turn sampler is
/// exact with either, because only its trajectories follow the gradient.
void gradient_of(const Task& task, std::span<const double> x_o, MatrixView<const double> theta,
                 MatrixView<double> d_theta) {
  if (task.name().starts_with("gaussian_linear")) {
    for (std::size_t i = 0; i < theta.rows; ++i) {
      for (std::size_t d = 0; d < theta.cols; ++d) d_theta(i, d) = (x_o[d] - theta(i, d)) / kGaussianVariance;
    }
    return;
  }
  constexpr double kStep = 1e-6;
  Matrix<double> moved(theta.rows, theta.cols);
  std::vector<double> below(theta.rows), above(theta.rows);
  for (std::size_t d = 0; d < theta.cols; ++d) {
    for (const double step : {-kStep, kStep}) {
      for (std::size_t i = 0; i < theta.rows; ++i) {
        std::copy(theta.row(i).begin(), theta.row(i).end(), moved.row(i).begin());
        moved(i, d) += step;
      }
      task.log_likelihood(moved, x_o, step < 0 ? below : above);
    }
    for (std::size_t i = 0; i < theta.rows; ++i) {
      const double slope = (above[i] - below[i]) / (2 * kStep);
      d_theta(i, d) = std::isfinite(slope) ? slope : 0.0;
    }
  }
}

/// The exact posterior of `task` for x_o.
Posterior exact_posterior(const Task& task, const std::vector<double>& x_o) {
  return Posterior::from_log_ratio(
      task.prior(),
      [&task, x_o](MatrixView<const double> theta, std::span<double> out) {
        task.log_likelihood(theta, x_o, out);
      },
      [&task, x_o](MatrixView<const double> theta, std::span<double> out, MatrixView<double> d_theta) {
        task.log_likelihood(theta, x_o, out);
        gradient_of(task, x_o, theta, d_theta);
      });
}

/// A sampler on a task, and the share of data sets for which it must say that it is complete.
struct Case {
  std::string task, method;
  double least_complete = 1.0;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return info.param.task + "_" + info.param.method;
}

/// Which data sets are judged may depend on x alone, so those for which a sampler says that it is not complete can be left out.
const std::vector<Case>& calibrated_cases() {
  static const std::vector<Case> cases = {{"gaussian_linear", "slice"},
                                          {"gaussian_linear", "nuts"},
                                          {"gaussian_linear", "auto"},
                                          {"gaussian_linear_uniform", "slice"},
                                          {"gaussian_linear_uniform", "nuts"},
                                          {"gaussian_linear_uniform", "auto"},
                                          {"two_moons", "rejection"},
                                          {"two_moons", "importance", 0.9},
                                          {"two_moons", "slice", 0.98},
                                          {"two_moons", "nuts", 0.9},
                                          {"gaussian_mixture", "rejection", 0.98},
                                          {"gaussian_mixture", "slice", 0.98},
                                          {"gaussian_mixture", "nuts", 0.9},
                                          {"slcp", "rejection", 0.05},
                                          {"slcp", "importance", 0.05},
                                          {"slcp", "slice", 0.9},
                                          {"slcp", "auto", 0.9}};
  return cases;
}

/// The samplers that start from the prior would take 2e8 evaluations where the posterior is narrow.
SamplingOptions calibration_options(const std::string& method) {
  SamplingOptions options;
  options.method = method;
  options.num_samples = kDraws;
  options.max_evaluations = method == "rejection" || method == "importance" ? 1000000 : 5000000;
  return options;
}

/// Ranks of true parameters among posterior draws: [D][data sets], each 0 .. kDraws.
using Ranks = std::vector<std::vector<std::size_t>>;

/// Adds the ranks of one data set. `stretch` makes the draws wider or narrower about their mean: the control.
void add_ranks(MatrixView<const double> draws, std::span<const double> truth, double stretch, Ranks& ranks) {
  for (std::size_t d = 0; d < ranks.size(); ++d) {
    double mean = 0.0;
    for (std::size_t s = 0; s < draws.rows; ++s) mean += draws(s, d) / static_cast<double>(draws.rows);
    std::size_t rank = 0;
    for (std::size_t s = 0; s < draws.rows; ++s) rank += mean + stretch * (draws(s, d) - mean) < truth[d];
    ranks[d].push_back(rank);
  }
}

/// Ranks over the data sets for which the sampler says that it is complete.
Ranks ranks_of_sampler(const Task& task, const std::string& method, std::size_t num_sets) {
  ThreadPool pool(2);
  const SimulationSet truth = simulate_from_prior(task.prior(), task.simulator(), num_sets, 77, pool);
  const auto maker = [&](std::size_t i, const RunContext&) {
    const auto x = truth.x.row(i);
    return exact_posterior(task, {x.begin(), x.end()});
  };
  const std::vector<PosteriorDraws> all =
      sample_many(num_sets, maker, calibration_options(method), {.pool = pool, .seed = 78});
  Ranks ranks(task.dim_theta());
  for (std::size_t i = 0; i < num_sets; ++i) {
    if (all[i].status == SamplingStatus::complete) add_ranks(all[i].theta, truth.theta.row(i), 1.0, ranks);
  }
  return ranks;
}

/// Ranks among exact draws that were stretched.
Ranks ranks_of_exact_draws(const Task& task, double stretch, std::size_t num_sets) {
  ThreadPool pool(2);
  const SimulationSet truth = simulate_from_prior(task.prior(), task.simulator(), num_sets, 77, pool);
  Ranks ranks(task.dim_theta());
  for (std::size_t i = 0; i < num_sets; ++i)
    add_ranks(task.reference_posterior(truth.x.row(i), kDraws, 1000 + i), truth.theta.row(i), stretch, ranks);
  return ranks;
}

/// Probability of a chi-squared as large under uniform ranks, in bins of which each has five ranks or more expected.
double chi_squared_p(const std::vector<std::size_t>& ranks) {
  const std::size_t bins = ranks.size() >= 100 ? 20 : 4;
  std::vector<double> counts(bins);
  for (const std::size_t rank : ranks) counts[rank * bins / (kDraws + 1)] += 1.0;
  const double expected = static_cast<double>(ranks.size()) / static_cast<double>(bins);
  double chi2 = 0.0;
  for (const double count : counts) chi2 += (count - expected) * (count - expected) / expected;
  const boost::math::chi_squared distribution(static_cast<double>(bins - 1));
  return boost::math::cdf(boost::math::complement(distribution, chi2));
}

/// Bound of the probability that the distribution function of uniform ranks is somewhere as far from the diagonal as here.
/// Source [Massart1990]: 2 exp(-2 n distance^2)
double band_p(const std::vector<std::size_t>& ranks) {
  const double n = static_cast<double>(ranks.size());
  std::vector<double> below(kDraws + 1);
  for (const std::size_t rank : ranks) below[rank] += 1.0 / n;
  double sum = 0.0, largest = 0.0;
  for (std::size_t r = 0; r <= kDraws; ++r) {
    sum += below[r];
    largest = std::max(largest, std::abs(sum - static_cast<double>(r + 1) / (kDraws + 1)));
  }
  return std::min(1.0, 2.0 * std::exp(-2.0 * n * largest * largest));
}

/// How far the spread of the ranks, as normal scores pooled over parameters, is from that of uniform ones, in standard errors:
/// draws that are too narrow make it positive.
double spread_z(const Ranks& ranks) {
  std::vector<double> square(kDraws + 1);
  double expected = 0.0;
  for (std::size_t r = 0; r <= kDraws; ++r) {
    const double score =
        boost::math::quantile(boost::math::normal(), (static_cast<double>(r) + 0.5) / (kDraws + 1));
    square[r] = score * score;
    expected += square[r] / (kDraws + 1);
  }
  const std::size_t n = ranks[0].size();
  double sum = 0.0, sum_of_squares = 0.0;  // over data sets: their parameters are not independent
  for (std::size_t i = 0; i < n; ++i) {
    double value = 0.0;
    for (const auto& of_parameter : ranks)
      value += square[of_parameter[i]] / static_cast<double>(ranks.size());
    sum += value - expected;
    sum_of_squares += (value - expected) * (value - expected);
  }
  const auto count = static_cast<double>(n);
  return sum / count / std::sqrt((sum_of_squares / count - sum * sum / count / count) / count);
}

class Calibration : public testing::TestWithParam<Case> {};

TEST_P(Calibration, RanksAreUniform) {
  const Case& c = GetParam();
  const std::unique_ptr<Task> task = make_task(c.task);
  const std::size_t num_sets = num_data_sets(*task);
  const Ranks ranks = ranks_of_sampler(*task, c.method, num_sets);
  const double complete = static_cast<double>(ranks[0].size());
  EXPECT_GE(complete, std::floor(c.least_complete * static_cast<double>(num_sets)));
  ASSERT_GT(complete, 0);
  double tests = 0.0;
  for (const Case& each : calibrated_cases())
    tests += 2.0 * static_cast<double>(make_task(each.task)->dim_theta());
  double chi2 = 1.0, band = 1.0;
  for (std::size_t d = 0; d < ranks.size(); ++d) {
    EXPECT_GT(chi_squared_p(ranks[d]), kFalseAlarms / tests) << task->parameter_names()[d];
    EXPECT_GT(band_p(ranks[d]), kFalseAlarms / tests) << task->parameter_names()[d];
    chi2 = std::min(chi2, chi_squared_p(ranks[d]));
    band = std::min(band, band_p(ranks[d]));
  }
  const double z = spread_z(ranks);
  if (complete >= 100) {  // with fewer its standard error is a guess
    EXPECT_LT(std::abs(z), 4.0);
  }
  write_row("calibration,%s,%s,%zu,%.0f,%.3g,%.3g,%.2f,", c.task.c_str(), c.method.c_str(), num_sets,
            complete, chi2, band, z);
}

INSTANTIATE_TEST_SUITE_P(ExactRatios, Calibration, testing::ValuesIn(calibrated_cases()), name_of);

TEST(CalibrationControl, ExactDrawsPassAndDrawsStretchedByFivePercentFail) {
  const std::unique_ptr<Task> task = make_task("gaussian_linear");
  const double exact = spread_z(ranks_of_exact_draws(*task, 1.0, kControl));
  const double narrow = spread_z(ranks_of_exact_draws(*task, 0.95, kControl));
  const double wide = spread_z(ranks_of_exact_draws(*task, 1.05, kControl));
  EXPECT_LT(std::abs(exact), 3.0);
  EXPECT_GT(narrow, 4.0);
  EXPECT_LT(wide, -4.0);
  write_row("control,gaussian_linear,exact draws,%zu,%zu,,,%.2f,", kControl, kControl, exact);
  write_row("control,gaussian_linear,exact draws x 0.95,%zu,%zu,,,%.2f,", kControl, kControl, narrow);
  write_row("control,gaussian_linear,exact draws x 1.05,%zu,%zu,,,%.2f,", kControl, kControl, wide);
}

TEST(CalibrationControl, ChiSquaredAndBandSeeASlopeInTheRanks) {
  std::vector<std::size_t> uniform, sloped;
  for (std::size_t i = 0; i < 5 * (kDraws + 1); ++i) {
    const double u = (static_cast<double>(i) + 0.5) / (5 * (kDraws + 1));
    uniform.push_back(static_cast<std::size_t>(u * (kDraws + 1)));
    sloped.push_back(static_cast<std::size_t>(std::pow(u, 1.5) * (kDraws + 1)));
  }
  EXPECT_GT(chi_squared_p(uniform), 0.99);
  EXPECT_GT(band_p(uniform), 0.99);
  EXPECT_LT(chi_squared_p(sloped), 1e-6);
  EXPECT_LT(band_p(sloped), 1e-6);
}

/// Draws of `method` for one observation, and 10,000 exact ones.
struct TwoSamples {
  PosteriorDraws draws;
  Matrix<double> exact;
};

/// The classifier takes its rows for independent. Draws of chains that are worth fewer are drawn more often and thinned.
PosteriorDraws nearly_independent(const Posterior& posterior, const std::string& method, ThreadPool& pool) {
  constexpr std::size_t kMostThinning = 10;
  SamplingOptions options;
  options.method = method;
  PosteriorDraws draws = sample(posterior, options, {.pool = pool, .seed = 7});
  const RecordValue* ess = draws.statistics.find("ess_bulk");
  if (!ess || draws.size() == 0) return draws;
  const double least = *std::ranges::min_element(std::get<std::vector<double>>(*ess));
  const auto every = std::min(
      kMostThinning, static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(draws.size()) / least)));
  if (every <= 1) return draws;
  const std::size_t wanted = draws.size();
  options.num_samples *= static_cast<std::int64_t>(every);
  draws = sample(posterior, options, {.pool = pool, .seed = 7});
  for (std::size_t i = 0; i < wanted && every * i < draws.size(); ++i)
    std::ranges::copy(std::as_const(draws.theta).row(every * i), draws.theta.row(i).begin());
  draws.theta.resize_rows(std::min(wanted, draws.size()));
  return draws;
}

TwoSamples draw_both(const Case& c, ThreadPool& pool) {
  const std::unique_ptr<Task> task = make_task(c.task);
  std::vector<double> x_o;
  TwoSamples samples;
  if (task->has_reference_posterior()) {
    const SimulationSet truth = simulate_from_prior(task->prior(), task->simulator(), 1, 5, pool);
    x_o.assign(truth.x.row(0).begin(), truth.x.row(0).end());
    samples.exact = task->reference_posterior(x_o, 10000, 6);
  } else {
    BenchmarkObservation observation = read_benchmark_observation(test::shared_path("sbibm"), c.task, 1);
    x_o = observation.x_o;
    samples.exact = std::move(observation.reference_posterior);
  }
  samples.draws = nearly_independent(exact_posterior(*task, x_o), c.method, pool);
  return samples;
}

class AgainstExactDraws : public testing::TestWithParam<Case> {};

TEST_P(AgainstExactDraws, AClassifierCannotTellThem) {
  const Case& c = GetParam();
  const bool is_quick = c.task == "two_moons" && c.method == "slice";
  if (!is_quick && !is_full_study())
    GTEST_SKIP() << "takes minutes: set NREC_CALIBRATION_DATA_SETS=" << kFullStudy;
  if (!make_task(c.task)->has_reference_posterior() && !test::exists(test::shared_path("sbibm")))
    GTEST_SKIP() << "no benchmark data at " << test::shared_path("sbibm");
  ThreadPool pool(2);
  const TwoSamples samples = draw_both(c, pool);
  ASSERT_EQ(samples.draws.status, SamplingStatus::complete) << samples.draws.message;
  const double accuracy = c2st(samples.exact, samples.draws.theta, {}, pool, silent_sink()).accuracy;
  // In ten columns the classifier is over-trained and two exact sets read 0.485 to 0.505.
  EXPECT_NEAR(accuracy, 0.5, samples.exact.cols() > 5 ? 0.015 : 0.01) << samples.draws.message;
  write_row("c2st,%s,%s,,,,,,%.4f", c.task.c_str(), c.method.c_str(), accuracy);
}

INSTANTIATE_TEST_SUITE_P(ExactRatios, AgainstExactDraws,
                         testing::Values(Case{"two_moons", "rejection"}, Case{"two_moons", "importance"},
                                         Case{"two_moons", "slice"}, Case{"two_moons", "nuts"},
                                         Case{"gaussian_mixture", "rejection"},
                                         Case{"gaussian_mixture", "slice"}, Case{"gaussian_mixture", "nuts"},
                                         Case{"slcp", "slice"}, Case{"slcp", "auto"},
                                         Case{"gaussian_linear", "slice"}, Case{"gaussian_linear", "nuts"},
                                         Case{"gaussian_linear_uniform", "slice"},
                                         Case{"gaussian_linear_uniform", "nuts"}),
                         name_of);

}  // namespace
}  // namespace nrec
