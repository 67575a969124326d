#include "nrec/inference/sample_many.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nrec/core/error.h"

namespace nrec {
namespace {

constexpr double kSd = 0.5;  // of x given theta

Prior standard_normal() { return Prior::from_terms({{{"a"}, "normal", {{"mean", {0}}, {"sd", {1}}}}}); }

/// theta ~ N(0, 1), x ~ N(theta, 0.25): the exact log ratio for x = `x`.
Posterior posterior_of(double x) {
  return Posterior::from_log_ratio(standard_normal(),
                                   [x](MatrixView<const double> theta, std::span<double> out) {
                                     for (std::size_t i = 0; i < theta.rows; ++i) {
                                       const double z = (x - theta(i, 0)) / kSd;
                                       out[i] = -0.5 * z * z;
                                     }
                                   });
}

SamplingOptions options(const std::string& method, std::int64_t num_samples) {
  SamplingOptions result;
  result.method = method;
  result.num_samples = num_samples;
  return result;
}

PosteriorMaker maker(const std::vector<double>& x) {
  return [&x](std::size_t i, const RunContext&) { return posterior_of(x[i]); };
}

TEST(SampleMany, GivesEachObservationWhatASingleCallGives) {
  const std::vector<double> x = {-1.0, 0.0, 2.0, 0.5, 1.5};
  for (const int threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    for (const char* method : {"rejection", "slice", "auto"}) {
      const RunContext run = {.pool = pool, .seed = 3};
      const std::vector<PosteriorDraws> all = sample_many(x.size(), maker(x), options(method, 50), run);
      ASSERT_EQ(all.size(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const RunContext alone = {.pool = pool, .seed = observation_seed(3, i)};
        const PosteriorDraws one = sample(posterior_of(x[i]), options(method, 50), alone);
        EXPECT_EQ(all[i].theta.values(), one.theta.values()) << method << " " << i;
        EXPECT_EQ(all[i].message, one.message);
      }
    }
  }
}

TEST(SampleMany, EveryObservationHasItsOwnPosteriorAndItsOwnDraws) {
  std::vector<double> x(40);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = -2.0 + 0.1 * static_cast<double>(i);
  ThreadPool pool(2);
  const std::size_t draws = 400;
  const std::vector<PosteriorDraws> all =
      sample_many(x.size(), maker(x), options("slice", draws), {.pool = pool, .seed = 5});
  double chi2 = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double mean = 0.0;
    for (std::size_t s = 0; s < draws; ++s) mean += all[i].theta(s, 0) / static_cast<double>(draws);
    // Posterior N(0.8 x, 0.2).
    const double z = (mean - 0.8 * x[i]) / std::sqrt(0.2 / static_cast<double>(draws));
    EXPECT_LT(std::abs(z), 4.5) << i;
    chi2 += z * z;
  }
  // Independent between observations: chi-squared with 40 degrees of freedom, 4 sd on each side.
  EXPECT_GT(chi2, 40 - 4 * std::sqrt(80.0));
  EXPECT_LT(chi2, 40 + 4 * std::sqrt(80.0));
  EXPECT_NE(all[0].theta.values(), all[1].theta.values());
}

TEST(SampleMany, WhatIsNotBegunSaysSo) {
  const std::vector<double> x = {0.0, 1.0, 2.0};
  ThreadPool pool(2);
  StopRequest stop;
  stop.request(15);
  const std::vector<PosteriorDraws> stopped =
      sample_many(3, maker(x), options("slice", 10), {.pool = pool, .stop = &stop});
  const std::vector<PosteriorDraws> late =
      sample_many(3, maker(x), options("slice", 10), {.pool = pool, .time_limit = 0.0});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(stopped[i].status, SamplingStatus::stopped);
    EXPECT_EQ(stopped[i].size(), 0u);
    EXPECT_EQ(late[i].status, SamplingStatus::budget_spent);
    EXPECT_EQ(late[i].names, (std::vector<std::string>{"a"}));
  }
}

TEST(SampleMany, NoObservationsAreNoDrawsAndErrorsComeThrough) {
  ThreadPool pool(2);
  const RunContext run = {.pool = pool};
  EXPECT_TRUE(sample_many(0, maker({}), options("slice", 10), run).empty());
  EXPECT_THROW(sample_many(
                   3, [](std::size_t, const RunContext&) -> Posterior { throw DomainError("x_o[1] = nan"); },
                   options("slice", 10), run),
               DomainError);
}

}  // namespace
}  // namespace nrec
