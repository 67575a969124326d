#include "experiments/toy_problem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace nrec {
namespace {

/// Sum over a fine grid times its step.
template <class Function>
double integral(double low, double high, const Function& f) {
  constexpr int kSteps = 20000;
  const double step = (high - low) / kSteps;
  double sum = 0.0;
  for (int i = 0; i < kSteps; ++i) sum += step * f(low + (i + 0.5) * step);
  return sum;
}

TEST(ImportanceToy, EvidenceIsTheMeanLikelihood) {
  for (const double x : {-2.1, -1.7, -0.3, 0.0, 1.73, 2.2}) {
    const double mean = integral(-toy::kBound, toy::kBound,
                                 [&](double theta) { return std::exp(toy::log_likelihood(theta, x)); }) /
                        (2.0 * toy::kBound);
    EXPECT_NEAR(toy::log_evidence(x), std::log(mean), 1e-5) << x;
  }
}

TEST(ImportanceToy, RatioIsPosteriorOverPrior) {
  Matrix<double> theta(1, 1);
  std::vector<double> log_prob(1);
  for (const double x : {-1.8, 0.4, 1.7}) {
    for (const double at : {-1.7, 0.35, 1.69}) {
      theta(0, 0) = at;
      toy::posterior(x).log_prob(theta, log_prob);
      EXPECT_NEAR(toy::log_ratio(at, x), log_prob[0] + std::log(2.0 * toy::kBound), 1e-9) << at << " " << x;
    }
  }
}

TEST(ImportanceToy, MutualInformationIsThePublishedOne) {
  EXPECT_NEAR(toy::mutual_information(), 2.1782, 5e-5);
}

TEST(ImportanceToy, PosteriorMomentsAreThoseOfTheDensity) {
  for (const double x : {-1.75, 0.2, 1.69}) {
    const auto moment = [&](int power) {
      return integral(-toy::kBound, toy::kBound, [&](double theta) {
        return std::pow(theta, power) * std::exp(toy::log_ratio(theta, x)) / (2.0 * toy::kBound);
      });
    };
    const auto exact = toy::posterior_moments(x);
    EXPECT_NEAR(exact.mean, moment(1), 1e-6) << x;
    EXPECT_NEAR(exact.sd, std::sqrt(moment(2) - moment(1) * moment(1)), 1e-5) << x;
  }
}

TEST(ImportanceToy, RowsAreDrawnFromTheirDistributions) {
  constexpr std::size_t kRows = 20000;
  std::vector<double> at_theta(kRows), marginal(kRows);
  toy::conditional_rows(0.5, 3, 0, at_theta);
  toy::marginal_rows(3, kRows, marginal);
  double mean = 0.0, square = 0.0, marginal_square = 0.0;
  for (std::size_t i = 0; i < kRows; ++i) {
    mean += at_theta[i] / kRows;
    square += (at_theta[i] - 0.5) * (at_theta[i] - 0.5) / kRows;
    marginal_square += marginal[i] * marginal[i] / kRows;
  }
  const double n = kRows;
  EXPECT_NEAR(mean, 0.5, 4.0 * 0.1 / std::sqrt(n));
  EXPECT_NEAR(square, 0.01, 4.0 * 0.01 * std::sqrt(2.0 / n));
  // theta^2 + noise: mean 1.01, variance E theta^4 - 1 + 0.04 + 0.0002 = 0.8402
  EXPECT_NEAR(marginal_square, 1.01, 4.0 * std::sqrt(0.8402 / n));
  // A row is a pure function of its number.
  std::vector<double> again(10);
  toy::marginal_rows(3, kRows + 5, again);
  EXPECT_EQ(again[0], marginal[5]);
}

}  // namespace
}  // namespace nrec
