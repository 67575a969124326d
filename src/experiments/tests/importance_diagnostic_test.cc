#include "nrec/experiments/importance_diagnostic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "experiments/toy_problem.h"
#include "nrec/core/error.h"

namespace nrec {
namespace {

constexpr double kExactInformation = 2.1782;

/// Published sizes, but for bins wide enough to count in.
ImportanceDiagnosticOptions full_options() {
  ImportanceDiagnosticOptions options;
  options.likelihood_bins = 200;
  options.num_information_rows = 4000;
  options.num_information_draws = 1023;
  return options;
}

ImportanceDiagnosticOptions small_options() {
  ImportanceDiagnosticOptions options;
  options.num_simulations = 4000;
  options.num_posterior_draws = 2000;
  options.num_c2st_draws = 200;
  options.num_bias_draws = 100;
  options.num_histogram_rows = 5000;
  options.likelihood_bins = 100;
  options.num_classifier_rows = 1000;
  options.num_roc_rows = 5000;
  options.classifier_epochs = 5;
  options.num_information_rows = 200;
  return options;
}

const RocComparison& roc(const ImportanceDiagnosticResult& result, const std::string& weights) {
  for (const RocComparison& comparison : result.rocs) {
    if (comparison.weights == weights) return comparison;
  }
  throw InternalError("no ROC comparison " + weights);
}

double area(const DensityHistogram& histogram) {
  return std::accumulate(histogram.density.begin(), histogram.density.end(), 0.0) * histogram.width();
}

/// How many of its sds chi-squared is above its mean, over bins where 20 or more are expected. `variance` is that of a
/// bin's share times n.
struct ChiSquared {
  double sum = 0.0;
  int count = 0;

  void add(double share, double expected, double variance, double n) {
    if (expected * n < 20.0) return;
    sum += n * (share - expected) * (share - expected) / variance;
    ++count;
  }
  double excess() const { return (sum - count) / std::sqrt(2.0 * count); }
};

/// The exact ratio, and one that is wrong by sin 5 x, at full size; once for all tests.
class ExactImportance : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ThreadPool pool(2);
    const RunContext run{.pool = pool, .seed = 2};
    exact_ = std::make_unique<ImportanceDiagnosticResult>(
        run_importance_diagnostic("exact", exact_pair_log_ratio(), full_options(), run));
    const PairLogRatio biased = [exact = exact_pair_log_ratio()](std::span<const double> theta,
                                                                 std::span<const double> x,
                                                                 std::span<double> log_ratio) {
      exact(theta, x, log_ratio);
      for (std::size_t i = 0; i < x.size(); ++i) log_ratio[i] += known_bias(x[i]);
    };
    biased_ = std::make_unique<ImportanceDiagnosticResult>(
        run_importance_diagnostic("biased", biased, full_options(), run));
  }
  static void TearDownTestSuite() {
    exact_.reset();
    biased_.reset();
  }
  static std::unique_ptr<ImportanceDiagnosticResult> exact_, biased_;
};
std::unique_ptr<ImportanceDiagnosticResult> ExactImportance::exact_, ExactImportance::biased_;

TEST_F(ExactImportance, PosteriorDrawsAreExact) {
  const PosteriorComparison& posterior = exact_->posterior;
  EXPECT_EQ(posterior.status, "complete") << posterior.message;
  ASSERT_EQ(posterior.num_draws, 100000u);
  const double n = 100000.0, sd = posterior.exact_sd;
  EXPECT_NEAR(posterior.x_o, 1.0, 0.4);
  EXPECT_NEAR(posterior.mean, posterior.exact_mean, 4.0 * sd / std::sqrt(n));
  EXPECT_NEAR(posterior.sd, sd, 4.0 * sd / std::sqrt(2.0 * n));
  // Folds of 4,000 of 20,000 rows: the mean accuracy has an error of 0.5 / sqrt(20,000).
  EXPECT_NEAR(posterior.c2st, 0.5, 4.0 * 0.5 / std::sqrt(20000.0));
  EXPECT_EQ(posterior.num_c2st_draws, 10000u);
  EXPECT_NEAR(area(posterior.draws), 1.0, 1e-12);
  EXPECT_EQ(posterior.draws.density.size(), 100u);
  EXPECT_EQ(posterior.draws.outside, 0.0);
  ChiSquared chi;
  for (std::size_t i = 0; i < posterior.exact.size(); ++i) {
    const double low = posterior.draws.centre(i) - 0.5 * posterior.draws.width();
    // Phi of the edges: the bounds of the prior are seven sds away.
    const double expected = toy::likelihood_cdf(posterior.x_o, low + posterior.draws.width()) -
                            toy::likelihood_cdf(posterior.x_o, low);
    chi.add(posterior.draws.density[i] * posterior.draws.width(), expected, expected * (1.0 - expected), n);
    EXPECT_NEAR(posterior.exact[i],
                std::exp(toy::log_ratio(posterior.draws.centre(i), posterior.x_o)) / (2.0 * toy::kBound),
                1e-9);
  }
  EXPECT_GT(chi.count, 15);
  EXPECT_LT(std::fabs(chi.excess()), 4.0);
}

/// Chi-squared of the simulated or the weighted histogram at one theta.
double likelihood_excess(const LikelihoodComparison& likelihood, bool is_weighted) {
  const DensityHistogram& histogram = is_weighted ? likelihood.weighted : likelihood.simulated;
  ChiSquared chi;
  for (std::size_t i = 0; i < histogram.density.size(); ++i) {
    const double x = histogram.centre(i), width = histogram.width();
    const double expected = toy::likelihood_cdf(likelihood.theta, x + 0.5 * width) -
                            toy::likelihood_cdf(likelihood.theta, x - 0.5 * width);
    // A row of p(x) in the bin has the weight r, so that n shares have the variance p(bin) r^2 = expected r.
    const double weight = is_weighted ? std::exp(toy::log_ratio(likelihood.theta, x)) : 1.0;
    const double n = 100000.0;
    if (is_weighted && expected / weight * n < 20.0) continue;
    chi.add(histogram.density[i] * width, expected, expected * weight - expected * expected, n);
  }
  EXPECT_GT(chi.count, 15);
  return chi.excess();
}

TEST_F(ExactImportance, WeightedSimulationsAreTheLikelihood) {
  ASSERT_EQ(exact_->likelihoods.size(), 3u);
  for (const LikelihoodComparison& likelihood : exact_->likelihoods) {
    EXPECT_NEAR(area(likelihood.simulated), 1.0, 1e-12);
    EXPECT_NEAR(area(likelihood.weighted), 1.0, 1e-12);
    EXPECT_EQ(likelihood.simulated.outside, 0.0);
    EXPECT_LT(std::fabs(likelihood_excess(likelihood, false)), 4.0) << likelihood.theta;
    EXPECT_LT(std::fabs(likelihood_excess(likelihood, true)), 4.0) << likelihood.theta;
    // E r^2 under p(x) is 2 sqrt 3 / (2 sqrt pi 0.1) = 9.772 inside the prior.
    EXPECT_NEAR(likelihood.effective_sample_size, 100000.0 / 9.772, 600.0);
    EXPECT_LT(likelihood.largest_cdf_difference, 2.0 / std::sqrt(likelihood.effective_sample_size));
  }
  EXPECT_NEAR(exact_->likelihoods[0].theta, -0.8660254, 1e-7);
  EXPECT_NEAR(exact_->likelihoods[2].theta, 0.8660254, 1e-7);
}

TEST_F(ExactImportance, ABiasIsSeenInTheWeightedSimulations) {
  for (const LikelihoodComparison& likelihood : biased_->likelihoods) {
    EXPECT_GT(likelihood_excess(likelihood, true), 10.0) << likelihood.theta;
    EXPECT_LT(std::fabs(likelihood_excess(likelihood, false)), 4.0) << likelihood.theta;
  }
}

TEST_F(ExactImportance, AClassifierSeesNothingButFindsTheBestAreaUnweighted) {
  const WeightedAuc weighted = roc(*exact_, "weighted").roc, unweighted = roc(*exact_, "unweighted").roc;
  EXPECT_NEAR(weighted.auc, 0.5, 4.0 * weighted.standard_error);
  EXPECT_GT(weighted.standard_error, 0.001);
  EXPECT_LT(weighted.standard_error, 0.005);
  EXPECT_NEAR(unweighted.auc, 0.954, 0.01);
  const RocComparison& normalised = roc(*exact_, "normalised");
  EXPECT_NEAR(normalised.roc.auc, weighted.auc, 0.002);
  EXPECT_NEAR(roc(*exact_, "weighted").effective_sample_size, 100000.0 / 9.772, 600.0);
  EXPECT_EQ(roc(*exact_, "unweighted").effective_sample_size, 100000.0);
  // A coin's cross entropy; the weights of the 1,000 zeros held out have mean 1 and variance 8.77.
  EXPECT_NEAR(roc(*exact_, "weighted").held_out_loss, std::log(2.0),
              4.0 * 0.5 * std::log(2.0) * std::sqrt(8.77 / 1000.0));
  for (const RocComparison& comparison : exact_->rocs) {
    ASSERT_EQ(comparison.roc.true_positive.size(), 101u) << comparison.weights;
    EXPECT_EQ(comparison.message, "");
  }
}

TEST_F(ExactImportance, AKnownBiasIsSeenWhilePosteriorDrawsStay) {
  const WeightedAuc weighted = roc(*biased_, "weighted").roc;
  EXPECT_GT(weighted.auc - 0.5, 5.0 * weighted.standard_error);
  // The biased classifier of the exact ratio is the weighted one of the biased ratio, but for rounding of the sum.
  EXPECT_NEAR(roc(*exact_, "biased").roc.auc, weighted.auc, 1e-6);
  const WeightedAuc mended = roc(*biased_, "normalised").roc;
  EXPECT_NEAR(mended.auc, 0.5, 4.0 * mended.standard_error);
  EXPECT_EQ(exact_->posterior.num_bias_draws, 1000u);
  EXPECT_EQ(exact_->posterior.num_bias_draws_changed, 0u);
  EXPECT_EQ(biased_->posterior.draws.density, exact_->posterior.draws.density);
  EXPECT_EQ(biased_->posterior.mean, exact_->posterior.mean);
}

TEST_F(ExactImportance, InformationIsTheExactOne) {
  const RatioInformation& exact = exact_->information;
  EXPECT_EQ(exact.num_rows, 4000u);
  EXPECT_NEAR(exact_->exact_information, kExactInformation, 5e-5);
  EXPECT_NEAR(exact.i0 - exact.i0_bias, kExactInformation, 4.0 * exact.i0_se);
  EXPECT_NEAR(exact.i1, kExactInformation, 4.0 * exact.i1_se);
  EXPECT_NEAR(exact.mean_ratio, 1.0, 4.0 * exact.mean_ratio_se);
  EXPECT_LT(exact.sd_log_z, 0.15);
  const RatioInformation& biased = biased_->information;
  EXPECT_NEAR(biased.i0, exact.i0, 1e-9);
  EXPECT_LT(biased.i1, exact.i1 - 0.1);
  EXPECT_GT(biased.sd_log_z, 0.5);
}

TEST_F(ExactImportance, NormalisationIsOneOrTheBias) {
  const NormalisationCurve& exact = exact_->normalisation;
  const NormalisationCurve& biased = biased_->normalisation;
  for (std::size_t i = 0; i < exact.x.size(); ++i) {
    // The rule is coarse for the narrow posteriors of x far outside the prior.
    EXPECT_NEAR(exact.log_z[i], 0.0, std::fabs(exact.x[i]) < toy::kBound + 0.2 ? 1e-3 : 1e-2) << exact.x[i];
    EXPECT_NEAR(biased.log_z[i], exact.log_z[i] + known_bias(exact.x[i]), 1e-9);
  }
  EXPECT_NEAR(biased(0.1234), known_bias(0.1234), 2e-3);
  EXPECT_NEAR(exact.mean, 0.0, 1e-4);
  EXPECT_LT(exact.sd, 1e-3);
  // Of sin 5 x, near enough: the mean of its square over (-sqrt 3, sqrt 3) is (1 - sin(10 sqrt 3)/(10 sqrt 3)) / 2.
  EXPECT_NEAR(biased.sd, std::sqrt(0.5 * (1.0 - std::sin(10.0 * toy::kBound) / (10.0 * toy::kBound))), 0.03);
  EXPECT_EQ(biased(10.0), biased.log_z.back());
  EXPECT_EQ(biased(-10.0), biased.log_z.front());
}

class ImportanceDiagnostic : public ::testing::Test {
 protected:
  template <class Expected>
  std::string refusal(const PairLogRatio& log_ratio, const ImportanceDiagnosticOptions& options) {
    try {
      run_importance_diagnostic("given", log_ratio, options, run_);
    } catch (const Expected& error) {
      return error.what();
    }
    return "no such error";
  }
  ThreadPool pool_{2};
  RunContext run_{.pool = pool_, .seed = 5};
};

TEST_F(ImportanceDiagnostic, GivesEqualBitsForAnyNumberOfThreads) {
  const auto result = [&](int threads) {
    ThreadPool pool(threads);
    return run_importance_diagnostic("exact", exact_pair_log_ratio(), small_options(),
                                     {.pool = pool, .seed = 5});
  };
  const ImportanceDiagnosticResult one = result(1), three = result(3);
  EXPECT_EQ(one.posterior.draws.density, three.posterior.draws.density);
  EXPECT_EQ(one.posterior.c2st, three.posterior.c2st);
  EXPECT_EQ(one.likelihoods[1].weighted.density, three.likelihoods[1].weighted.density);
  for (std::size_t i = 0; i < one.rocs.size(); ++i) {
    EXPECT_EQ(one.rocs[i].roc.auc, three.rocs[i].roc.auc);
    EXPECT_EQ(one.rocs[i].roc.true_positive, three.rocs[i].roc.true_positive);
  }
  EXPECT_EQ(one.information.i0, three.information.i0);
  EXPECT_EQ(one.status, ExperimentStatus::done);
  const ImportanceDiagnosticResult other =
      run_importance_diagnostic("exact", exact_pair_log_ratio(), small_options(), {.pool = pool_, .seed = 6});
  EXPECT_NE(one.rocs[0].roc.auc, other.rocs[0].roc.auc);
}

TEST_F(ImportanceDiagnostic, RefusesOptionsWithEveryBrokenRule) {
  ImportanceDiagnosticOptions options = small_options();
  options.num_roc_rows = 1;
  options.posterior_bins = 0;
  options.training.loss = "nre-d";
  options.network.hidden_features = 0;
  EXPECT_EQ(refusal<ConfigError>(exact_pair_log_ratio(), options),
            "importance_diagnostic: posterior_bins = 0 must be an integer in [1, 1e+06]; num_roc_rows = 1 "
            "must be an integer in [2, 1e+08]; hidden_features = 0 must be an integer in [1, 4096]; loss = "
            "\"nre-d\" must be one of nre-a | nre-b | nre-c");
}

TEST_F(ImportanceDiagnostic, RefusesAnEmptyFunctionAndRatiosThatAreNoNumbers) {
  EXPECT_EQ(
      refusal<ConfigError>({}, small_options()),
      "importance_diagnostic: the log ratio \"given\" is an empty function; give one that can be called");
  const PairLogRatio nan = [](std::span<const double>, std::span<const double>, std::span<double> log_ratio) {
    std::fill(log_ratio.begin(), log_ratio.end(), std::nan(""));
  };
  const std::string text = refusal<DomainError>(nan, small_options());
  EXPECT_NE(text.find("importance_diagnostic: the log ratio at theta = "), std::string::npos) << text;
  EXPECT_NE(text.find(" is nan; it must be a number, or -inf for a ratio of 0"), std::string::npos) << text;
}

TEST_F(ImportanceDiagnostic, SaysWhereWeightsAreOfNoUse) {
  for (const double shift : {800.0, -800.0}) {
    const PairLogRatio shifted = [&, exact = exact_pair_log_ratio()](std::span<const double> theta,
                                                                     std::span<const double> x,
                                                                     std::span<double> log_ratio) {
      exact(theta, x, log_ratio);
      for (double& value : log_ratio) value += shift;
    };
    const ImportanceDiagnosticResult result =
        run_importance_diagnostic("shifted", shifted, small_options(), run_);
    EXPECT_EQ(result.status, ExperimentStatus::done);
    EXPECT_TRUE(std::isnan(roc(result, "weighted").roc.auc));
    EXPECT_EQ(roc(result, "weighted").message,
              shift > 0 ? "weights are too large for float64" : "all weights are 0");
    // What does not depend on the scale of the weights is as good as ever.
    EXPECT_NEAR(roc(result, "normalised").roc.auc, 0.5, 0.06);
    EXPECT_NEAR(area(result.likelihoods[0].weighted), 1.0, 1e-12);
    EXPECT_LT(result.likelihoods[0].largest_cdf_difference, 0.15);
  }
}

TEST_F(ImportanceDiagnostic, EndsEarlyWithAStatus) {
  StopRequest stop;
  RunContext stopped = run_;
  stopped.stop = &stop;
  std::size_t calls = 0;
  const PairLogRatio stopping = [&, exact = exact_pair_log_ratio()](std::span<const double> theta,
                                                                    std::span<const double> x,
                                                                    std::span<double> log_ratio) {
    exact(theta, x, log_ratio);
    // The likelihoods are the first to ask at a single theta.
    if (theta.size() > 1 && theta[0] == 0.0 && theta[1] == 0.0 && ++calls == 1) stop.request(15);
  };
  const ImportanceDiagnosticResult result =
      run_importance_diagnostic("exact", stopping, small_options(), stopped);
  EXPECT_EQ(result.status, ExperimentStatus::stopped);
  EXPECT_EQ(result.message, "stopped on request while weighting simulations; the same call goes on");
  EXPECT_EQ(result.posterior.num_draws, 2000u);
  EXPECT_TRUE(result.rocs.empty());
  RunContext hurried = run_;
  hurried.time_limit = 0.0;
  const ImportanceDiagnosticResult late =
      run_importance_diagnostic("exact", exact_pair_log_ratio(), small_options(), hurried);
  EXPECT_EQ(late.status, ExperimentStatus::budget_spent);
  EXPECT_EQ(late.message, "time limit reached while drawing from the posterior; the same call goes on");
  EXPECT_EQ(late.posterior.num_draws, 0u);
}

}  // namespace
}  // namespace nrec
