#include "nrec/priors/prior.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nrec/core/error.h"
#include "priors/tests/prior_cases.h"

namespace nrec {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Prior mixed_prior() {
  return Prior::from_terms({
      term("uniform", {{"low", {0.1}}, {"high", {10}}}, {"mass"}),
      term("multivariate_normal", {{"mean", {0, 1}}, {"precision", {2, 0.5, 0.5, 1}}}, {"x", "y"}),
      term("log_normal", {{"location", {-0.125}}, {"scale", {0.5}}}, {"rate"}),
      term("truncated_normal", {{"mean", {0}}, {"sd", {1}}, {"high", {-1}}}, {"cold"}),
  });
}

TEST(Prior, ProductAddsTheTermsAndOrdersTheColumns) {
  const Prior prior = mixed_prior();
  EXPECT_EQ(prior.dim(), 5u);
  EXPECT_EQ(prior.names(), (std::vector<std::string>{"mass", "x", "y", "rate", "cold"}));
  Matrix<double> theta(1000, 5);
  prior.sample(1, Stream::prior, 0, theta);
  std::vector<double> total(1000), sum(1000, 0.0), part(1000);
  prior.log_prob(theta, total);
  std::size_t first = 0;
  for (const PriorTerm& one : prior.terms()) {
    const MatrixView<const double> columns(theta.data() + first, 1000, one.names.size(), 5);
    Prior::from_terms({one}).log_prob(columns, part);
    for (std::size_t i = 0; i < 1000; ++i) sum[i] += part[i];
    first += one.names.size();
  }
  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_NEAR(total[i], sum[i], 1e-13 * std::max(1.0, std::fabs(sum[i])));
    ASSERT_TRUE(prior.contains(theta.row(i)));
  }
}

TEST(Prior, LogJacobianIsTheSumOverColumns) {
  const Prior prior = mixed_prior();
  const std::vector<double> u = {0.3, 5.0, -2.0, 1.25, -0.5};
  double total = 0.0;
  prior.log_abs_det_jacobian({u.data(), 1, 5}, {&total, 1});
  const double sigmoid = 1 / (1 + std::exp(-0.3));
  EXPECT_NEAR(total, std::log(9.9 * sigmoid * (1 - sigmoid)) + 1.25 - 0.5, 1e-14);
}

TEST(Prior, BijectionsWorkInPlaceAndOnStridedRows) {
  const Prior prior = mixed_prior();
  Matrix<double> theta(7, 5);
  prior.sample(2, Stream::prior, 0, theta);
  Matrix<double> wide(7, 8), separate(7, 5);
  for (std::size_t i = 0; i < 7; ++i) {
    for (std::size_t d = 0; d < 5; ++d) wide(i, d) = theta(i, d);
  }
  const MatrixView<double> view(wide.data(), 7, 5, 8);
  prior.to_unbounded(view, view);
  prior.to_unbounded(theta, separate);
  for (std::size_t i = 0; i < 7; ++i) {
    for (std::size_t d = 0; d < 5; ++d) ASSERT_EQ(wide(i, d), separate(i, d));
  }
  EXPECT_EQ(separate(0, 1), theta(0, 1));
  EXPECT_NEAR(separate(0, 3), std::log(theta(0, 3)), 1e-15);
  EXPECT_NEAR(separate(0, 4), std::log(-1 - theta(0, 4)), 1e-15);
  prior.to_constrained(view, view);
  for (std::size_t i = 0; i < 7; ++i) {
    for (std::size_t d = 0; d < 5; ++d)
      ASSERT_NEAR(wide(i, d), theta(i, d), 1e-13 * std::max(1.0, std::fabs(theta(i, d))));
  }
}

TEST(Prior, BoundsAreThoseOfTheSupport) {
  const Prior prior = mixed_prior();
  EXPECT_EQ(prior.bounds(0), (std::pair{0.1, 10.0}));
  EXPECT_EQ(prior.bounds(1), (std::pair{-kInf, kInf}));
  EXPECT_EQ(prior.bounds(3), (std::pair{0.0, kInf}));
  EXPECT_EQ(prior.bounds(4), (std::pair{-kInf, -1.0}));
  EXPECT_THROW(prior.bounds(5), ShapeError);
}

TEST(Prior, FarOffsetsKeepTheirDigits) {
  const double low = 2460000.5, high = 2460000.6;
  const Prior prior = Prior::from_terms({term("uniform", {{"low", {low}}, {"high", {high}}})});
  for (double theta = low; theta < high; theta += 0.00390625) {
    double u = 0.0, back = 0.0;
    prior.to_unbounded({&theta, 1, 1}, {&u, 1, 1});
    prior.to_constrained({&u, 1, 1}, {&back, 1, 1});
    ASSERT_EQ(back, theta);
  }
}

TEST(Prior, IdentityTransformLeavesTheWalls) {
  PriorTerm walled = term("uniform", {{"low", {-1}}, {"high", {1}}});
  walled.transform = "identity";
  const Prior prior = Prior::from_terms({walled});
  const double u = 1.5;
  double theta = 0.0, log_prob = 0.0, jacobian = 1.0;
  prior.to_constrained({&u, 1, 1}, {&theta, 1, 1});
  prior.log_prob({&theta, 1, 1}, {&log_prob, 1});
  prior.log_abs_det_jacobian({&u, 1, 1}, {&jacobian, 1});
  EXPECT_EQ(theta, 1.5);
  EXPECT_EQ(log_prob, -kInf);
  EXPECT_EQ(jacobian, 0.0);
}

TEST(Prior, DensityOnBoundsIsTheLimitOrMinusInfinity) {
  const auto at = [](PriorTerm one, double theta) {
    double result = 1.0;
    Prior::from_terms({std::move(one)}).log_prob({&theta, 1, 1}, {&result, 1});
    return result;
  };
  EXPECT_EQ(at(term("uniform", {{"low", {0}}, {"high", {4}}}), 4.0), -std::log(4.0));
  EXPECT_EQ(at(term("exponential", {{"rate", {3}}}), 0.0), std::log(3.0));
  EXPECT_NEAR(at(term("half_normal", {{"scale", {1}}}), 0.0), 0.5 * std::log(2 / M_PI), 1e-15);
  EXPECT_EQ(at(term("log_normal", {{"location", {0}}, {"scale", {1}}}), 0.0), -kInf);
  EXPECT_EQ(at(term("gamma", {{"shape", {1}}, {"rate", {3}}}), 0.0), std::log(3.0));
  EXPECT_EQ(at(term("gamma", {{"shape", {0.5}}, {"rate", {3}}}), 0.0), -kInf);
  EXPECT_EQ(at(term("gamma", {{"shape", {2}}, {"rate", {3}}}), 0.0), -kInf);
  EXPECT_EQ(at(term("beta", {{"alpha", {1}}, {"beta", {3}}}), 0.0), std::log(3.0));
  EXPECT_EQ(at(term("beta", {{"alpha", {1}}, {"beta", {3}}}), 1.0), -kInf);
  EXPECT_EQ(at(term("beta", {{"alpha", {0.5}}, {"beta", {1}}, {"high", {2}}}), 2.0), std::log(0.25));
}

TEST(Prior, SmallShapesNeverReachTheBound) {
  // Half of the mass of gamma(0.001) lies below the smallest double.
  for (const PriorTerm& one : {term("gamma", {{"shape", {0.001}}, {"rate", {1}}}),
                               term("beta", {{"alpha", {0.001}}, {"beta", {0.001}}}),
                               term("log_normal", {{"location", {0}}, {"scale", {1000}}})}) {
    const Prior prior = Prior::from_terms({one});
    Matrix<double> theta(20000, 1);
    std::vector<double> log_prob(20000);
    prior.sample(1, Stream::prior, 0, theta);
    prior.log_prob(theta, log_prob);
    for (std::size_t i = 0; i < 20000; ++i)
      ASSERT_TRUE(std::isfinite(log_prob[i])) << one.family << " " << theta(i, 0);
  }
}

TEST(Prior, SamplesGiveAnEmpiricalPrior) {
  const Matrix<double> table(3, 2, {1, -5, 2, 0, 3, 7});
  const Prior prior = Prior::from_samples({"a", "b"}, table);
  EXPECT_FALSE(prior.has_density());
  EXPECT_TRUE(prior.terms().empty());
  EXPECT_EQ(prior.samples(), table);
  EXPECT_EQ(prior.bounds(1), (std::pair{-5.0, 7.0}));
  EXPECT_TRUE(prior.contains(std::vector<double>{1.5, 7.0}));
  EXPECT_FALSE(prior.contains(std::vector<double>{1.5, 7.5}));
  Matrix<double> theta(30000, 2), u(30000, 2);
  prior.sample(1, Stream::prior, 0, theta);
  std::size_t counts[3] = {};
  for (std::size_t i = 0; i < theta.rows(); ++i) {
    const auto row = static_cast<std::size_t>(theta(i, 0)) - 1;
    ASSERT_LT(row, 3u);
    ASSERT_EQ(theta(i, 1), table(row, 1));
    ++counts[row];
  }
  for (const std::size_t count : counts)
    EXPECT_NEAR(static_cast<double>(count), 10000.0, 4 * std::sqrt(30000 * 2.0 / 9));
  prior.to_unbounded(theta, u);
  EXPECT_EQ(u, theta);
  EXPECT_EQ(prior.description(), std::vector<std::string>{"(a, b) ~ one of the 3 rows of a table"});
}

TEST(Prior, DescribesItself) {
  PriorTerm walled = term("uniform", {{"low", {0.1}}, {"high", {10}}}, {"mass"});
  EXPECT_EQ(Prior::from_terms({walled}).description(),
            std::vector<std::string>{"mass ~ uniform(low = 0.1, high = 10)"});
  walled.transform = "identity";
  const auto joint =
      term("multivariate_normal", {{"mean", {0, 1, 2}}, {"covariance", {1, 0, 0, 0, 1, 0, 0, 0, 1}}},
           {"a", "b", "c"});
  EXPECT_EQ(Prior::from_terms({walled, joint}).description(),
            (std::vector<std::string>{
                "mass ~ uniform(low = 0.1, high = 10), transform = identity",
                "(a, b, c) ~ multivariate_normal(mean = [0, 1, 2], covariance = [9 numbers])"}));
}

TEST(Prior, FamiliesExplainEveryKeyword) {
  ASSERT_EQ(prior_families().size(), 10u);
  for (const PriorFamilyInfo& info : prior_families()) {
    EXPECT_FALSE(info.formula.empty());
    EXPECT_FALSE(info.support.empty());
    EXPECT_EQ(info.meanings.size(), info.keywords.size()) << info.family;
    EXPECT_EQ(info.defaults.size(), info.keywords.size()) << info.family;
    for (const std::string& meaning : info.meanings) EXPECT_FALSE(meaning.empty()) << info.family;
  }
}

TEST(Prior, AliasesAndDefaultsAreTheSameDistribution) {
  const double theta = 0.75;
  const auto density = [&](PriorTerm one) {
    double result = 0.0;
    Prior::from_terms({std::move(one)}).log_prob({&theta, 1, 1}, {&result, 1});
    return result;
  };
  EXPECT_EQ(density(term("normal", {{"mean", {1}}, {"sd", {2}}})),
            density(term("normal", {{"location", {1}}, {"scale", {2}}})));
  EXPECT_EQ(density(term("beta", {{"alpha", {2}}, {"beta", {3}}})),
            density(term("beta", {{"alpha", {2}}, {"beta", {3}}, {"low", {0}}, {"high", {1}}})));
  EXPECT_NEAR(density(term("truncated_normal", {{"mean", {1}}, {"sd", {2}}})),
              density(term("normal", {{"mean", {1}}, {"sd", {2}}})), 1e-15);
}

}  // namespace
}  // namespace nrec
