// The full check on posteriors whose errors are known.
#include "nrec/diagnostics/full_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "diagnostics/tests/gaussian_posterior.h"
#include "nrec/core/error.h"

namespace nrec {
namespace {

using testing::GaussianPosterior;

constexpr std::size_t kRows = 600;

class FullCheck : public ::testing::Test {
 protected:
  CheckReport check(const GaussianPosterior& subject, std::size_t rows = kRows, bool is_normalised = true) {
    const auto [theta, x] = subject.pairs(rows, 21);
    FullCheckOptions options;
    options.held_out.num_prior_draws = 512;
    options.held_out.num_posterior_draws = 0;
    return full_check({subject.prior(), subject.maker(x), is_normalised}, {.theta = theta, .x = x}, options,
                      RunContext{.pool = pool_});
  }
  static const CheckItem& item(const CheckReport& report, const std::string& name) {
    for (const CheckItem& candidate : report.items) {
      if (candidate.name == name) return candidate;
    }
    throw InternalError("no item " + name);
  }
  static double number(const CheckReport& report, const std::string& name) {
    return std::get<double>(*report.record.find(name));
  }
  static std::vector<double> list(const CheckReport& report, const std::string& name) {
    return std::get<std::vector<double>>(*report.record.find(name));
  }
  static void expect_in(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }

  ThreadPool pool_{2};
};

TEST_F(FullCheck, TrustsAnExactPosterior) {
  const CheckReport report = check({.dim = 3});
  EXPECT_EQ(report.verdict, Verdict::trusted) << report.sentence;
  EXPECT_EQ(report.sentence, "all checks passed");
  EXPECT_NEAR(number(report, "normalisation.mean_ratio"), 1.0,
              4 * number(report, "normalisation.mean_ratio_se"));
  // 3 / 2 log(1 + 1 / 0.25)
  EXPECT_NEAR(number(report, "information.i0") - number(report, "information.i0_bias"), 2.4142,
              4 * number(report, "information.i0_se"));
  EXPECT_GT(number(report, "power.prior.auc"), 0.8);  // the classifier can see
}

TEST_F(FullCheck, RecordsEveryCurveWithItsBand) {
  const CheckReport report = check({.dim = 2});
  const std::size_t levels = list(report, "levels").size();
  EXPECT_EQ(levels, 39u);
  for (const char* name :
       {"coverage.highest_density", "coverage.band_low", "coverage.band_high", "tarp.coverage",
        "tarp.band_low", "tarp.band_high", "ranks.ecdf_band_low", "ranks.ecdf_band_high"})
    EXPECT_EQ(list(report, name).size(), levels) << name;
  for (const char* name : {"coverage.central", "ranks.ecdf"})
    EXPECT_EQ(list(report, name).size(), 2 * levels) << name;
  EXPECT_EQ(list(report, "ranks.counts").size(), 2 * 20u);
  EXPECT_EQ(list(report, "ratio.roc").size(), 101u);
  EXPECT_EQ(list(report, "tests.p_value").size(), 2 * 4 + 5u);
  EXPECT_EQ(std::get<std::vector<std::string>>(*report.record.find("tests.name")).size(), 2 * 4 + 5u);
  for (std::size_t g = 0; g < levels; ++g)
    EXPECT_LT(list(report, "coverage.band_low")[g], list(report, "coverage.band_high")[g]);
}

TEST_F(FullCheck, CatchesAPosteriorThatIsAFifthTooNarrow) {
  const CheckReport report = check({.dim = 2, .width = 0.8});
  EXPECT_EQ(report.verdict, Verdict::not_trusted);
  EXPECT_EQ(item(report, "ranks").verdict, Verdict::not_trusted);
  expect_in(item(report, "ranks").sentence, "% too narrow (corrected p = ");
  expect_in(item(report, "ranks").sentence, "simulate more, lower gamma");
  EXPECT_EQ(item(report, "coverage").verdict, Verdict::not_trusted) << item(report, "coverage").sentence;
  for (const double width : list(report, "ranks.width")) EXPECT_NEAR(width, 0.8, 0.08);
}

TEST_F(FullCheck, CatchesAPosteriorThatIsTooWide) {
  const CheckReport report = check({.dim = 2, .width = 1.3});
  EXPECT_EQ(item(report, "ranks").verdict, Verdict::not_trusted);
  expect_in(item(report, "ranks").sentence, "% too wide");
  expect_in(item(report, "ranks").sentence, "train longer or with a larger network");
}

TEST_F(FullCheck, SaysOfSmallDeviationsThatTheyAreVisible) {
  // A tenth of a sd is less than what matters, and 6,000 rows see it.
  const CheckReport report = check({.dim = 2, .shift = {0.1, 0.0}}, 6000);
  expect_in(item(report, "ranks").sentence, "a small deviation is visible: ");
  expect_in(report.sentence, "all checks passed, with small deviations (ranks");
}

TEST_F(FullCheck, CatchesAShiftOfHalfASd) {
  const CheckReport report = check({.dim = 2, .shift = {0.5, 0.5}});
  EXPECT_EQ(report.verdict, Verdict::not_trusted);
  expect_in(item(report, "ranks").sentence, "lies too high by 0.");
  EXPECT_EQ(item(report, "classifier").verdict, Verdict::not_trusted) << item(report, "classifier").sentence;
  for (const double shift : list(report, "ranks.shift")) EXPECT_NEAR(shift, -0.5, 0.2);
}

TEST_F(FullCheck, CatchesABiasOfTheSecondParameterAlone) {
  const CheckReport report = check({.dim = 3, .shift = {0.0, 1.0, 0.0}});
  EXPECT_EQ(report.verdict, Verdict::not_trusted);
  expect_in(report.sentence, "the posterior of t1 lies too high");
  const std::vector<double> means = list(report, "ranks.mean");
  // Phi(-1 / sqrt 2) = 0.24; the standard error of a mean rank is 0.0118
  EXPECT_NEAR(means[0], 0.5, 4 * 0.0118);
  EXPECT_NEAR(means[1], 0.24, 0.04);
  EXPECT_NEAR(means[2], 0.5, 4 * 0.0118);
  EXPECT_EQ(item(report, "tarp").verdict, Verdict::not_trusted) << item(report, "tarp").sentence;
}

double wave(double x) { return std::sin(5.0 * x); }

TEST_F(FullCheck, CatchesAFunctionOfXAlthoughThePosteriorDoesNotChange) {
  const CheckReport exact = check({.dim = 1, .noise = 0.3});
  const CheckReport biased = check({.dim = 1, .noise = 0.3, .c = wave});
  EXPECT_EQ(exact.verdict, Verdict::trusted) << exact.sentence;
  EXPECT_EQ(item(biased, "ratio").verdict, Verdict::cannot_tell) << item(biased, "ratio").sentence;
  EXPECT_LT(number(biased, "ratio.p_value"), 1e-6);
  EXPECT_GT(number(biased, "ratio.auc"), 0.6);
  expect_in(biased.sentence, "the ratio is wrong by a function of x");
  for (const char* name : {"ranks", "coverage", "tarp", "classifier"})
    EXPECT_EQ(item(biased, name).verdict, Verdict::trusted) << item(biased, name).sentence;
  // Ranks are those of the exact ratio but for rounding, and so is I0; I1 is not.
  EXPECT_NEAR(list(biased, "ranks.mean")[0], list(exact, "ranks.mean")[0], 1e-6);
  EXPECT_NEAR(number(biased, "information.i0"), number(exact, "information.i0"), 1e-9);
  EXPECT_LT(number(biased, "information.i1"), number(exact, "information.i1") - 0.1);
}

TEST_F(FullCheck, LeavesTheNormalisationOfNreBAlone) {
  const CheckReport report = check({.dim = 1, .noise = 0.3, .c = wave}, kRows, false);
  EXPECT_EQ(report.verdict, Verdict::trusted) << report.sentence;
  for (const CheckItem& one : report.items) EXPECT_NE(one.name, "ratio");
}

TEST_F(FullCheck, SaysThatFewRowsAreNotEnough) {
  const CheckReport report = check({.dim = 1}, 100);
  EXPECT_EQ(report.verdict, Verdict::cannot_tell);
  EXPECT_EQ(item(report, "power").verdict, Verdict::cannot_tell);
  expect_in(item(report, "power").sentence,
            "100 held-out rows would show, in nine of ten cases, a shift of 0.");
  expect_in(item(report, "power").sentence, "that is too little: hold out more simulations");
  EXPECT_EQ(check({.dim = 1}, 10).verdict, Verdict::cannot_tell);
  EXPECT_THROW(check({.dim = 1}, 0), ShapeError);
}

TEST_F(FullCheck, CorrectsForTheNumberOfTests) {
  const CheckReport report = check({.dim = 2});
  const std::vector<double> raw = list(report, "tests.p_value"),
                            corrected = list(report, "tests.corrected_p_value");
  const auto smallest = std::min_element(raw.begin(), raw.end()) - raw.begin();
  EXPECT_NEAR(corrected[static_cast<std::size_t>(smallest)],
              std::min(1.0, static_cast<double>(raw.size()) * raw[static_cast<std::size_t>(smallest)]),
              1e-12);
}

TEST_F(FullCheck, GivesTheSameBitsOnAnyNumberOfThreads) {
  const GaussianPosterior subject{.dim = 2};
  const auto [theta, x] = subject.pairs(60, 5);
  const HeldOutOptions options{.num_prior_draws = 64};
  ThreadPool one(1), three(3);
  const HeldOutRatios a =
      evaluate_held_out(subject.prior(), subject.maker(x), theta, options, RunContext{.pool = one});
  const HeldOutRatios b =
      evaluate_held_out(subject.prior(), subject.maker(x), theta, options, RunContext{.pool = three});
  EXPECT_EQ(a.density_ranks(), b.density_ranks());
  EXPECT_EQ(a.distance_ranks(), b.distance_ranks());
  EXPECT_EQ(a.draws, b.draws);
}

TEST_F(FullCheck, ASamplerHelpsWherePriorDrawsDoNotReach) {
  // Posteriors of a hundredth of the prior's width in two parameters: 64 draws never hit, 640 hardly.
  const GaussianPosterior subject{.dim = 2, .noise = 0.01};
  const auto [theta, x] = subject.pairs(20, 5);
  const HeldOutRatios found = evaluate_held_out(subject.prior(), subject.maker(x), theta,
                                                {.num_prior_draws = 64}, RunContext{.pool = pool_});
  EXPECT_GT(found.num_sampled, 10u);
  EXPECT_LT(found.mean_own_share(), 0.2);
  EXPECT_EQ(found.num_without_support, 0u);
}

TEST_F(FullCheck, NamesRowsWithoutSupport) {
  const GaussianPosterior subject{.dim = 1};
  const auto [theta, x] = subject.pairs(200, 5);
  const PosteriorMaker nothing = [&](std::size_t, const RunContext&) {
    return Posterior::from_log_ratio(subject.prior(), [](MatrixView<const double>, std::span<double> out) {
      std::fill(out.begin(), out.end(), -std::numeric_limits<double>::infinity());
    });
  };
  FullCheckOptions options;
  options.held_out.num_prior_draws = 16;
  options.held_out.num_posterior_draws = 0;
  const CheckReport report = full_check({subject.prior(), nothing, true}, {.theta = theta, .x = x}, options,
                                        RunContext{.pool = pool_});
  EXPECT_EQ(report.verdict, Verdict::not_trusted);
  expect_in(item(report, "support").sentence, "the ratio of 200 held-out rows is 0 or not finite");
}

TEST_F(FullCheck, StopsAndSaysSo) {
  const GaussianPosterior subject{.dim = 1};
  const auto [theta, x] = subject.pairs(200, 5);
  const RunContext none = {.pool = pool_, .time_limit = -1.0};
  const CheckReport report =
      full_check({subject.prior(), subject.maker(x), true}, {.theta = theta, .x = x}, {}, none);
  EXPECT_EQ(report.verdict, Verdict::cannot_tell);
  EXPECT_FALSE(std::get<bool>(*report.record.find("complete")));
  expect_in(item(report, "completeness").sentence, "the check was cut short");
}

TEST_F(FullCheck, RefusesDataThatDoNotFit) {
  const GaussianPosterior subject{.dim = 1};
  const auto [theta, x] = subject.pairs(60, 5);
  const CheckedRatio ratio{subject.prior(), subject.maker(x), true};
  const RunContext run{.pool = pool_};
  try {
    full_check(ratio, {.theta = theta, .x = x.view().middle_rows(0, 59)}, {}, run);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "check: theta has 60 rows but x has 59; both must have one row for each simulation");
  }
  const std::vector<double> two = {1.0, 2.0};
  EXPECT_THROW(full_check(ratio, {.theta = theta, .x = x, .x_o = {two.data(), 1, 2}}, {}, run), ShapeError);
  FullCheckOptions options;
  options.held_out.num_prior_draws = 1;
  EXPECT_THROW(full_check(ratio, {.theta = theta, .x = x}, options, run), DomainError);
}

/// With a simulator and observations.
class FullCheckAtObservation : public FullCheck {
 protected:
  CheckReport check_at(const GaussianPosterior& subject, const std::vector<double>& x_o,
                       const RunContext& run) {
    const FunctionSimulator simulator(
        "line", 1, 1, [&](std::span<const double> theta, RandomStream& random, std::span<double> out) {
          out[0] = theta[0] + subject.noise * random.normal();
        });
    const auto [theta, x] = subject.pairs(kRows, 21);
    FullCheckOptions options;
    options.held_out.num_prior_draws = 512;
    options.held_out.num_posterior_draws = 0;
    const Prior prior = subject.prior();
    const auto draws = [&](std::size_t i, std::size_t count, const RunContext& context) {
      SamplingOptions settings;
      settings.num_samples = static_cast<std::int64_t>(count);
      return sample(subject.at(prior, std::span(x_o).subspan(i, 1)), settings, context);
    };
    return full_check(
        {prior, subject.maker(x), true},
        {.theta = theta, .x = x, .x_o = {x_o.data(), x_o.size(), 1}, .draws = draws, .simulator = &simulator},
        options, run);
  }
  CheckReport check_at(const GaussianPosterior& subject, const std::vector<double>& x_o) {
    return check_at(subject, x_o, RunContext{.pool = pool_});
  }
};

TEST_F(FullCheckAtObservation, TrustsAnObservationLikeTheSimulations) {
  const CheckReport report = check_at({.dim = 1}, {0.7});
  EXPECT_EQ(report.verdict, Verdict::trusted) << report.sentence;
  EXPECT_EQ(item(report, "observation").verdict, Verdict::trusted);
  EXPECT_EQ(item(report, "predictive").verdict, Verdict::trusted);
  EXPECT_EQ(list(report, "thetas.auc").size(), 3u);
  for (std::size_t t = 0; t < 3; ++t)
    EXPECT_LT(std::fabs(list(report, "thetas.auc")[t] - 0.5), 4 * list(report, "thetas.auc_se")[t]);
  EXPECT_GT(list(report, "thetas.unweighted_auc")[0], 0.6);
}

TEST_F(FullCheckAtObservation, DoesNotTrustAnObservationFarOut) {
  const CheckReport report = check_at({.dim = 1}, {9.0});
  EXPECT_EQ(report.verdict, Verdict::not_trusted);
  EXPECT_EQ(item(report, "observation").verdict, Verdict::not_trusted)
      << item(report, "observation").sentence;
  expect_in(item(report, "observation").sentence, "check the order and units of x_o");
}

TEST_F(FullCheckAtObservation, SeesThatThePosteriorDoesNotMakeTheObservation) {
  // Moved by ten of its sds, 4.5: data simulated there are 4.5 +- 0.7 above x_o.
  const CheckReport report = check_at({.dim = 1, .shift = {10.0}}, {0.0});
  EXPECT_EQ(item(report, "predictive").verdict, Verdict::not_trusted);
  expect_in(item(report, "predictive").sentence,
            "x_o[0] lies above 0.0 % of the data simulated at posterior draws");
}

/// Draws of p(x), of which one in twenty has a p-value below 0.05.
std::vector<double> usual_observations(std::size_t count) {
  std::vector<double> x_o;
  RandomStream random(8, Stream::check, 1);
  for (std::size_t i = 0; i < count; ++i) x_o.push_back(std::sqrt(1.25) * random.normal());
  return x_o;
}

TEST_F(FullCheckAtObservation, TellsWhichOfSeveralObservationsIsFar) {
  std::vector<double> x_o = usual_observations(5);
  const CheckReport usual = check_at({.dim = 1}, x_o);
  EXPECT_EQ(usual.verdict, Verdict::trusted) << usual.sentence;
  EXPECT_EQ(list(usual, "observation.p_value").size(), 5u);
  EXPECT_EQ(list(usual, "predictive.below").size(), 5u);
  x_o[3] = 9.0;
  const CheckReport report = check_at({.dim = 1}, x_o);
  EXPECT_EQ(item(report, "observation").verdict, Verdict::not_trusted);
  expect_in(item(report, "observation").sentence, "row 3 of x_o is ");
}

TEST_F(FullCheckAtObservation, SeesThatManyObservationsAreUnlikely) {
  // Data of noise 0.5 but posteriors moved by one sd, 0.45, and simulations of sd 0.67: tails of 5 % hold some 10 %.
  const std::vector<double> x_o = usual_observations(40);
  EXPECT_EQ(item(check_at({.dim = 1}, x_o), "predictive").verdict, Verdict::trusted);
  const CheckReport report = check_at({.dim = 1, .shift = {4.0}}, x_o);
  EXPECT_EQ(item(report, "predictive").verdict, Verdict::not_trusted);
  expect_in(item(report, "predictive").sentence, " of 40 observations are not like data simulated at their");
}

TEST_F(FullCheckAtObservation, KeepsThePlaceOfAnObservationWithoutDraws) {
  const GaussianPosterior subject{.dim = 1};
  const FunctionSimulator simulator(
      "line", 1, 1, [&](std::span<const double> theta, RandomStream& random, std::span<double> out) {
        out[0] = theta[0] + 0.5 * random.normal();
      });
  const auto [theta, x] = subject.pairs(kRows, 21);
  const std::vector<double> x_o = {0.1, 0.2, 0.3};
  const auto draws = [&](std::size_t i, std::size_t count, const RunContext&) {
    PosteriorDraws result;
    if (i == 1) return result;
    result.theta = Matrix<double>(count, 1);
    result.log_ratio.assign(count, 0.0);
    return result;
  };
  const CheckReport report =
      full_check({subject.prior(), subject.maker(x), true},
                 {.theta = theta, .x = x, .x_o = {x_o.data(), 3, 1}, .draws = draws, .simulator = &simulator},
                 {}, RunContext{.pool = pool_});
  const std::vector<double> p_values = list(report, "predictive.p_value");
  ASSERT_EQ(p_values.size(), 3u);
  EXPECT_FALSE(std::isnan(p_values[0]));
  EXPECT_TRUE(std::isnan(p_values[1]));
  EXPECT_FALSE(std::isnan(p_values[2]));
  EXPECT_EQ(list(report, "predictive.below").size(), 3u);
}

TEST_F(FullCheckAtObservation, SaysThatATimeLimitCutItShort) {
  RunContext hasty{.pool = pool_};
  hasty.time_limit = 1e-9;
  const CheckReport report = check_at({.dim = 1}, usual_observations(3), hasty);
  EXPECT_FALSE(std::get<bool>(*report.record.find("complete")));
}

TEST_F(FullCheckAtObservation, ComparesTheDistributionOfIndependentRows) {
  // Posterior of R rows: N(mean R / (R + noise^2), noise^2 / (R + noise^2)); the rows have another noise than the simulator.
  const FunctionSimulator simulator(
      "line", 1, 1, [&](std::span<const double> theta, RandomStream& random, std::span<double> out) {
        out[0] = theta[0] + 0.5 * random.normal();
      });
  const GaussianPosterior subject{.dim = 1};
  const auto [theta, x] = subject.pairs(kRows, 21);
  for (const double noise : {0.5, 0.1}) {
    Matrix<double> x_o(36, 1);
    RandomStream random(4, Stream::check, 2);
    double sum = 0.0;
    for (std::size_t i = 0; i < x_o.rows(); ++i) sum += x_o(i, 0) = 0.7 + noise * random.normal();
    const auto draws = [&](std::size_t, std::size_t count, const RunContext&) {
      PosteriorDraws result;
      result.theta = Matrix<double>(count, 1);
      result.log_ratio.assign(count, 0.0);
      RandomStream normal(5, Stream::check, 3);
      for (std::size_t i = 0; i < count; ++i)
        result.theta(i, 0) = sum / 36.25 + std::sqrt(0.25 / 36.25) * normal.normal();
      return result;
    };
    const CheckReport report = full_check(
        {subject.prior(), subject.maker(x), true},
        {.theta = theta, .x = x, .x_o = x_o, .has_iid_rows = true, .draws = draws, .simulator = &simulator},
        {}, RunContext{.pool = pool_});
    EXPECT_EQ(item(report, "predictive").verdict, noise == 0.5 ? Verdict::trusted : Verdict::not_trusted);
    EXPECT_EQ(item(report, "independent rows").verdict,
              Verdict::trusted);  // 600 held-out rows vouch for 37
    if (noise != 0.5)
      expect_in(item(report, "predictive").sentence, "column 0 of x_o is distributed otherwise than data");
  }
}

TEST_F(FullCheckAtObservation, SeesAFunctionOfXAtSingleThetas) {
  const CheckReport report = check_at({.dim = 1, .noise = 1.0, .c = wave}, {0.0});
  int seen = 0;
  for (const double p : list(report, "thetas.p_value")) seen += p < 1e-3;
  EXPECT_GE(seen, 2);
  EXPECT_EQ(item(report, "ratio").verdict, Verdict::cannot_tell);
}

}  // namespace
}  // namespace nrec
