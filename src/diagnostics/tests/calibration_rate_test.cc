// Over many repetitions: an exact posterior passes at the stated rate, wrong ones fail.
#include <gtest/gtest.h>

#include <algorithm>

#include "diagnostics/calibration_tests.h"
#include "diagnostics/tests/gaussian_posterior.h"
#include "nrec/diagnostics/uniformity.h"

namespace nrec {
namespace {

using testing::GaussianPosterior;

constexpr std::size_t kRows = 400;
constexpr std::uint64_t kRepetitions = 200;

/// Tests of ranks, coverage and TARP on fresh pairs and fresh draws.
CheckFindings tested(const GaussianPosterior& subject, std::uint64_t repetition, ThreadPool& pool) {
  const auto [theta, x] = subject.pairs(kRows, 1000 + repetition);
  const HeldOutRatios held_out = evaluate_held_out(subject.prior(), subject.maker(x), theta,
                                                   {.num_prior_draws = 200, .num_posterior_draws = 0},
                                                   RunContext{.pool = pool, .seed = 5000 + repetition});
  CheckFindings findings;
  test_calibration(held_out, subject.prior().names(), findings);
  return findings;
}

double smallest(const CheckFindings& findings, const std::string& item) {
  double p = 1.0;
  for (const CheckTest& test : findings.tests) {
    if (test.item == item) p = std::min(p, test.p_value);
  }
  return p;
}

double smallest_corrected(const CheckFindings& findings) {
  std::vector<double> p_values;
  for (const CheckTest& test : findings.tests) p_values.push_back(test.p_value);
  const std::vector<double> adjusted = holm_adjusted(p_values);
  return *std::min_element(adjusted.begin(), adjusted.end());
}

TEST(CalibrationRate, AnExactPosteriorPassesAtTheStatedRate) {
  ThreadPool pool(2);
  int coverage = 0, tarp = 0, any = 0;
  for (std::uint64_t i = 0; i < kRepetitions; ++i) {
    const CheckFindings findings = tested({.dim = 2, .noise = 1.0}, i, pool);
    coverage += smallest(findings, "coverage") < 0.1;
    tarp += smallest(findings, "tarp") < 0.1;
    any += smallest_corrected(findings) < 0.1;
  }
  // Of 200: 20 expected at p < 0.1, standard deviation 4.2. All together, corrected: at most so many.
  EXPECT_NEAR(coverage, 20, 17);
  EXPECT_NEAR(tarp, 20, 17);
  EXPECT_LE(any, 20 + 17);
}

TEST(CalibrationRate, WrongPosteriorsFail) {
  ThreadPool pool(2);
  int narrow = 0, shifted = 0, second = 0;
  for (std::uint64_t i = 0; i < 20; ++i) {
    narrow += smallest_corrected(tested({.dim = 2, .noise = 1.0, .width = 0.8}, i, pool)) < 0.01;
    shifted += smallest_corrected(tested({.dim = 2, .noise = 1.0, .shift = {0.5, 0.5}}, i, pool)) < 0.01;
    second += smallest_corrected(tested({.dim = 3, .noise = 1.0, .shift = {0.0, 1.0, 0.0}}, i, pool)) < 0.01;
  }
  EXPECT_EQ(narrow, 20);
  EXPECT_EQ(shifted, 20);
  EXPECT_EQ(second, 20);
}

}  // namespace
}  // namespace nrec
