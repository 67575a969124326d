// The item "predictive" of the full check with data that the caller simulates.
#include <gtest/gtest.h>

#include <cmath>

#include "diagnostics/tests/gaussian_posterior.h"
#include "nrec/core/error.h"
#include "nrec/diagnostics/full_check.h"

namespace nrec {
namespace {

using testing::GaussianPosterior;

/// Exact posteriors of theta ~ N(0, 1), x = theta + 0.5 e, and draws at x_o = 0.7 that are exact, too.
class PredictiveItem : public ::testing::Test {
 protected:
  CheckReport check(const DataMaker& simulate, const RunContext& run, std::size_t num_draws = 200,
                    std::size_t num_observations = 1) {
    const GaussianPosterior subject{.dim = 1};
    const auto [theta, x] = subject.pairs(200, 21);
    const std::vector<double> x_o(num_observations, 0.7);
    FullCheckOptions options;
    options.held_out.num_prior_draws = 512;
    options.held_out.num_posterior_draws = 0;
    options.num_predicted = num_draws;
    CheckData data{.theta = theta, .x = x, .x_o = {x_o.data(), num_observations, 1}};
    data.draws = [](std::size_t, std::size_t count, const RunContext&) {
      PosteriorDraws draws;
      draws.theta = Matrix<double>(count, 1);
      RandomStream random(4, Stream::check);
      for (std::size_t i = 0; i < count; ++i)
        draws.theta(i, 0) = 0.8 * 0.7 + std::sqrt(0.2) * random.normal();
      draws.log_ratio.assign(count, 0.0);
      return draws;
    };
    data.simulate = simulate;
    return full_check({subject.prior(), subject.maker(x), true}, data, options, run);
  }
  CheckReport check(const DataMaker& simulate) { return check(simulate, RunContext{.pool = pool_}); }

  /// x = theta + shift + 0.5 e for the first `count` rows.
  static DataMaker maker(double shift, std::size_t count = 1000) {
    return [=](MatrixView<const double> theta, std::uint64_t first_row, const RunContext&) {
      Matrix<double> x(std::min(count, theta.rows), 1);
      for (std::size_t i = 0; i < x.rows(); ++i)
        x(i, 0) = theta(i, 0) + shift + 0.5 * RandomStream(3, Stream::simulator, first_row + i).normal();
      return x;
    };
  }
  static const CheckItem* item(const CheckReport& report, const std::string& name) {
    for (const CheckItem& candidate : report.items) {
      if (candidate.name == name) return &candidate;
    }
    return nullptr;
  }

  ThreadPool pool_{2};
};

TEST_F(PredictiveItem, IsThatOfTheDataThatWereMade) {
  const CheckReport good = check(maker(0.0));
  ASSERT_NE(item(good, "predictive"), nullptr);
  EXPECT_EQ(item(good, "predictive")->verdict, Verdict::trusted);
  EXPECT_EQ(std::get<double>(*good.record.find("predictive.rows")), 200.0);
  const CheckReport bad = check(maker(5.0));  // 7 sds of the data
  EXPECT_EQ(item(bad, "predictive")->verdict, Verdict::not_trusted);
  EXPECT_EQ(bad.verdict, Verdict::not_trusted);
  EXPECT_EQ(item(check({}), "predictive"), nullptr) << "nothing to simulate with";
}

TEST_F(PredictiveItem, CannotTellWhereTooFewSimulationsSucceed) {
  const CheckReport report = check(maker(0.0, 49));
  ASSERT_NE(item(report, "predictive"), nullptr);
  EXPECT_EQ(item(report, "predictive")->verdict, Verdict::cannot_tell);
  EXPECT_EQ(
      item(report, "predictive")->sentence,
      "49 of 200 simulations at the posterior of x_o succeeded, too few to hold it against them (50 are "
      "needed); see why the simulator fails there, or simulate more of them");
  EXPECT_NE(report.verdict, Verdict::trusted);
  EXPECT_EQ(item(check(maker(0.0, 50)), "predictive")->verdict, Verdict::trusted);
}

TEST_F(PredictiveItem, CannotTellWithTooFewDraws) {
  const CheckReport report = check(maker(0.0), RunContext{.pool = pool_}, 30);
  ASSERT_NE(item(report, "predictive"), nullptr);
  EXPECT_EQ(item(report, "predictive")->verdict, Verdict::cannot_tell);
  EXPECT_EQ(item(report, "predictive")->sentence,
            "there are 30 draws at x_o, too few to hold it against what is simulated there (50 are needed); "
            "draw more");
}

TEST_F(PredictiveItem, ListsObservationsThatTheTimeLimitLeftOut) {
  StopRequest stop;
  const RunContext run = {.pool = pool_, .stop = &stop};
  const DataMaker whole = maker(0.0);
  int calls = 0;
  const CheckReport report = check(
      [&](MatrixView<const double> theta, std::uint64_t first_row, const RunContext& context) {
        if (++calls == 2) stop.request(1);
        return whole(theta, first_row, context);
      },
      run, 200, 3);
  EXPECT_FALSE(std::get<bool>(*report.record.find("complete")));
  const auto p_values = std::get<std::vector<double>>(*report.record.find("predictive.p_value"));
  ASSERT_EQ(p_values.size(), 3u);
  EXPECT_FALSE(std::isnan(p_values[1]));
  EXPECT_TRUE(std::isnan(p_values[2]));
  EXPECT_EQ(item(report, "draws")->sentence, "2 of 3 observations have all their draws");
}

TEST_F(PredictiveItem, CutShortByAStopIsNoFailureOfTheSimulator) {
  StopRequest stop;
  const RunContext run = {.pool = pool_, .stop = &stop};
  const DataMaker whole = maker(0.0, 49);
  const CheckReport report = check(
      [&](MatrixView<const double> theta, std::uint64_t first_row, const RunContext& context) {
        stop.request(1);
        return whole(theta, first_row, context);
      },
      run);
  EXPECT_EQ(item(report, "predictive"), nullptr);
  EXPECT_FALSE(std::get<bool>(*report.record.find("complete")));
}

}  // namespace
}  // namespace nrec
