#include "nrec/inference/evidence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "inference/pareto_smoothing.h"
#include "nrec/core/error.h"

namespace nrec {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// theta ~ N(0, 1)^dim, x ~ N(theta, noise^2): a log likelihood, so Z is p(x_o), the product of N(x; 0, 1 + noise^2).
struct Conjugate {
  std::size_t dim;
  double noise, x;

  Posterior posterior() const {
    std::vector<PriorTerm> terms;
    for (std::size_t d = 0; d < dim; ++d)
      terms.push_back({{"t" + std::to_string(d)}, "normal", {{"mean", {0.0}}, {"sd", {1.0}}}, "auto"});
    const Conjugate self = *this;
    return Posterior::from_log_ratio(Prior::from_terms(terms),
                                     [self](MatrixView<const double> theta, std::span<double> r) {
                                       for (std::size_t i = 0; i < theta.rows; ++i) {
                                         r[i] = 0;
                                         for (std::size_t d = 0; d < self.dim; ++d)
                                           r[i] -= 0.5 * std::pow((self.x - theta(i, d)) / self.noise, 2) +
                                                   std::log(self.noise * std::sqrt(2 * M_PI));
                                       }
                                     });
  }
  double log_z() const {
    const double variance = 1 + noise * noise;
    return -0.5 * static_cast<double>(dim) * (x * x / variance + std::log(2 * M_PI * variance));
  }
  /// sqrt((E w^2 / (E w)^2 - 1) / S): E w^2 is an evidence with noise^2 / 2.
  double standard_error(double num_draws) const {
    const Conjugate half{dim, noise / std::sqrt(2.0), x};
    const double log_ratio =
        half.log_z() - static_cast<double>(dim) * std::log(2 * noise * std::sqrt(M_PI)) - 2 * log_z();
    return std::sqrt((std::exp(log_ratio) - 1) / num_draws);
  }
};

class Evidence : public ::testing::Test {
 protected:
  ThreadPool pool_{2};
  RunContext run_{.pool = pool_};
};

TEST_F(Evidence, OfAConjugateGaussianEqualsTheClosedForm) {
  for (const Conjugate& model : {Conjugate{1, 0.5, 1.0}, Conjugate{2, 0.3, 0.5}, Conjugate{3, 1.0, -1.5}}) {
    const LogEvidence evidence = log_evidence(model.posterior(), run_);
    EXPECT_EQ(evidence.num_draws, 20000u);
    EXPECT_TRUE(evidence.is_reliable()) << evidence.k_hat;
    EXPECT_NEAR(evidence.log_z, model.log_z(), 4 * evidence.standard_error);
    EXPECT_NEAR(evidence.standard_error, model.standard_error(20000), 0.1 * evidence.standard_error);
    // An observation that differs by a twentieth of the noise is seen.
    const Conjugate other{model.dim, model.noise, model.x * 1.2};
    EXPECT_GT(std::fabs(evidence.log_z - other.log_z()), 4 * evidence.standard_error);
  }
}

TEST_F(Evidence, ErrorsAreThoseOfManySeeds) {
  const Conjugate model{2, 0.3, 0.5};
  double square = 0;
  const int seeds = 100;
  for (int seed = 1; seed <= seeds; ++seed) {
    RunContext run{.pool = pool_, .seed = static_cast<std::uint64_t>(seed)};
    const LogEvidence evidence = log_evidence(model.posterior(), run, 5000);
    square += std::pow((evidence.log_z - model.log_z()) / evidence.standard_error, 2) / seeds;
  }
  EXPECT_NEAR(square, 1.0, 4 * std::sqrt(2.0 / seeds));
}

TEST_F(Evidence, IsRightWhereAllTheWeightIsInTheTailOfTheWeights) {
  // The posterior is 1 / 150 of the prior, so the largest 424 of 20,000 weights are all that counts: a Pareto distribution in
  // their place would be wrong by a tenth of a nat.
  const Conjugate model{2, 0.05, 0.5};
  double z = 0.0, square = 0.0, z_smoothed = 0.0;
  constexpr int kSeeds = 100;
  Matrix<double> theta(20000, 2);
  std::vector<double> log_ratio(20000);
  for (int seed = 1; seed <= kSeeds; ++seed) {
    RunContext run{.pool = pool_, .seed = static_cast<std::uint64_t>(seed)};
    const LogEvidence evidence = log_evidence(model.posterior(), run);
    const double error = (evidence.log_z - model.log_z()) / evidence.standard_error;
    z += error / kSeeds;
    square += error * error / kSeeds;
    model.posterior().prior().sample(run.seed, Stream::check, 0, theta);  // the same draws
    model.posterior().log_ratio(theta, log_ratio);
    const double smoothed = smooth_weights(log_ratio).log_sum - std::log(20000.0);
    z_smoothed += (smoothed - model.log_z()) / evidence.standard_error / kSeeds;
  }
  EXPECT_GT(std::fabs(z_smoothed), 4 / std::sqrt(kSeeds));
  EXPECT_NEAR(z, 0.0, 4 / std::sqrt(kSeeds));
  EXPECT_NEAR(square, 1.0, 4 * std::sqrt(2.0 / kSeeds));
}

TEST_F(Evidence, OfAConstantRatioIsThatConstant) {
  const Prior prior = Prior::from_terms({{{"t"}, "uniform", {{"low", {0.0}}, {"high", {1.0}}}, "auto"}});
  const LogEvidence evidence = log_evidence(
      Posterior::from_log_ratio(
          prior, [](MatrixView<const double>, std::span<double> r) { std::fill(r.begin(), r.end(), -3.5); }),
      run_);
  EXPECT_NEAR(evidence.log_z, -3.5, 1e-12);
  EXPECT_NEAR(evidence.standard_error, 0.0, 1e-9);
  EXPECT_TRUE(evidence.is_reliable());
}

TEST_F(Evidence, SaysThatANarrowPosteriorCannotBeTrusted) {
  const LogEvidence evidence = log_evidence(Conjugate{5, 0.02, 0.3}.posterior(), run_);
  EXPECT_GT(evidence.k_hat, 0.7);
  EXPECT_FALSE(evidence.is_reliable());
  const LogEvidence wide = log_evidence(Conjugate{5, 1.0, 0.3}.posterior(), run_);
  EXPECT_LT(wide.k_hat, 0.3);
  EXPECT_TRUE(wide.is_reliable());
  EXPECT_FALSE(log_evidence_ratio(wide, evidence).is_reliable);
}

TEST_F(Evidence, RatiosOfTwoObservationsHaveCombinedErrors) {
  const Conjugate first{2, 0.5, 0.4}, second{2, 0.5, 1.2};
  RunContext other{.pool = pool_, .seed = 2};
  const LogEvidence a = log_evidence(first.posterior(), run_), b = log_evidence(second.posterior(), other);
  const LogEvidenceRatio ratio = log_evidence_ratio(a, b);
  EXPECT_TRUE(ratio.is_reliable);
  EXPECT_NEAR(ratio.standard_error, std::hypot(a.standard_error, b.standard_error), 1e-15);
  EXPECT_NEAR(ratio.value, first.log_z() - second.log_z(), 4 * ratio.standard_error);
  EXPECT_GT(std::fabs(ratio.value), 20 * ratio.standard_error);
}

TEST_F(Evidence, NormalisesTheDensity) {
  const Conjugate model{1, 0.5, 1.0};  // posterior N(0.8, 0.2)
  const Posterior posterior = model.posterior();
  const LogEvidence evidence = log_evidence(posterior, run_);
  const Matrix<double> theta(3, 1, {-0.5, 0.8, 1.3});
  std::vector<double> log_density(3);
  normalised_log_density(posterior, evidence, theta, log_density);
  for (std::size_t i = 0; i < 3; ++i) {
    const double exact = -0.5 * std::pow(theta(i, 0) - 0.8, 2) / 0.2 - 0.5 * std::log(2 * M_PI * 0.2);
    EXPECT_NEAR(log_density[i], exact, 4 * evidence.standard_error);
  }
}

TEST_F(Evidence, TakesAMillionDrawsInBlocksAndTheSameOnesForAnyNumberOfThreads) {
  const Posterior posterior = Conjugate{2, 0.3, 0.5}.posterior();
  std::size_t most = 0;
  const Posterior watched =
      Posterior::from_log_ratio(posterior.prior(), [&](MatrixView<const double> theta, std::span<double> r) {
        most = std::max(most, theta.rows);
        posterior.log_ratio(theta, r);
      });
  const LogEvidence many = log_evidence(watched, run_, 1000000);
  EXPECT_EQ(most, 65536u);
  EXPECT_NEAR(many.log_z, (Conjugate{2, 0.3, 0.5}).log_z(), 4 * many.standard_error);
  EXPECT_LT(many.standard_error, 0.003);
  ThreadPool pool(7);
  EXPECT_EQ(log_evidence(posterior, RunContext{.pool = pool}, 1000000).log_z, many.log_z);
}

TEST_F(Evidence, RefusesAndSaysWhatCannotBe) {
  const Posterior nowhere = Posterior::from_log_ratio(
      Conjugate{1, 1, 1}.posterior().prior(),
      [](MatrixView<const double>, std::span<double> r) { std::fill(r.begin(), r.end(), -kInf); });
  const LogEvidence none = log_evidence(nowhere, run_);
  EXPECT_EQ(none.log_z, -kInf);
  EXPECT_TRUE(std::isnan(none.standard_error));
  EXPECT_FALSE(none.is_reliable());
  const auto refusal = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const DomainError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal([&] { log_evidence(nowhere, run_, 1); }), "evidence: num_draws = 1 must be at least 2");
  std::vector<double> value(1);
  EXPECT_EQ(
      refusal([&] { normalised_log_density(nowhere, none, Matrix<double>(1, 1), value); }),
      "evidence: log_z = -inf cannot normalise a density; no prior draw has any: check the observation");
}

}  // namespace
}  // namespace nrec
