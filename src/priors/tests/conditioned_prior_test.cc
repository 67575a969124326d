#include "nrec/priors/conditioned_prior.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nrec/core/error.h"
#include "priors/tests/prior_cases.h"

namespace nrec {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double log_prob_of(const Prior& prior, std::vector<double> theta) {
  double result = 0.0;
  prior.log_prob({theta.data(), 1, theta.size()}, {&result, 1});
  return result;
}

Prior joint_normal(const char* keyword, std::vector<double> mean, std::vector<double> matrix,
                   std::vector<std::string> names) {
  return Prior::from_terms({term(
      "multivariate_normal", {{"mean", std::move(mean)}, {keyword, std::move(matrix)}}, std::move(names))});
}

/// mass, (a, b, c) jointly normal, rate.
Prior mixed(const char* keyword, const std::vector<double>& matrix) {
  return Prior::from_terms(
      {term("uniform", {{"low", {0.1}}, {"high", {10}}}, {"mass"}),
       term("multivariate_normal", {{"mean", {1, -2, 0.5}}, {keyword, matrix}}, {"a", "b", "c"}),
       term("exponential", {{"rate", {2}}}, {"rate"})});
}

const std::vector<double> kCovariance = {2.0, 0.6, -0.4, 0.6, 1.0, 0.3, -0.4, 0.3, 1.5};
// Its inverse by cofactors: determinant 1.976.
const std::vector<double> kPrecision = {1.41 / 1.976,  -1.02 / 1.976, 0.58 / 1.976,
                                        -1.02 / 1.976, 2.84 / 1.976,  -0.84 / 1.976,
                                        0.58 / 1.976,  -0.84 / 1.976, 1.64 / 1.976};

TEST(ConditionedPrior, DropsWholeTermsAndKeepsTheOrder) {
  const Prior prior = mixed("covariance", kCovariance);
  const std::vector<FixedParameter> fixed = {{"rate", 0.25}, {"mass", 2.0}};
  const ConditionedPrior given = condition(prior, fixed);
  EXPECT_EQ(given.prior.names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(given.free_columns, (std::vector<std::size_t>{1, 2, 3}));
  EXPECT_EQ(given.prior.terms()[0], prior.terms()[1]);
  const Matrix<double> free(2, 3, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(given.all_columns(free), Matrix<double>(2, 5, {2, 1, 2, 3, 0.25, 2, 4, 5, 6, 0.25}));
  EXPECT_EQ(given.only_free(given.all_columns(free)), free);
}

TEST(ConditionedPrior, WithoutFixedParametersIsThePriorItself) {
  const ConditionedPrior given = condition(mixed("covariance", kCovariance), {});
  EXPECT_EQ(given.prior.names(), given.names);
  EXPECT_EQ(given.free_columns.size(), 5u);
  const Prior table = Prior::from_samples({"t"}, Matrix<double>(2, 1, {1, 2}));
  EXPECT_EQ(condition(table, {}).prior.samples(), table.samples());
}

TEST(ConditionedPrior, OfAJointNormalIsJointOverMarginal) {
  struct Case {
    std::vector<FixedParameter> fixed;
    std::vector<double> mean, covariance;  // of the fixed ones
  };
  const Case cases[] = {{{{"b", 0.7}}, {-2}, {1.0}},
                        {{{"c", -1.0}, {"a", 2.5}}, {1, 0.5}, {2.0, -0.4, -0.4, 1.5}}};
  for (const char* keyword : {"covariance", "precision"}) {
    const Prior prior = mixed(keyword, std::string(keyword) == "covariance" ? kCovariance : kPrecision);
    for (const Case& c : cases) {
      const ConditionedPrior given = condition(prior, c.fixed);
      std::vector<double> fixed_values;
      std::vector<std::string> fixed_names;
      for (std::size_t d = 0; d < 5; ++d) {
        if (std::isnan(given.values[d])) continue;
        fixed_values.push_back(given.values[d]);
        fixed_names.push_back(given.names[d]);
      }
      const double marginal =
          log_prob_of(joint_normal("covariance", c.mean, c.covariance, fixed_names), fixed_values);
      Matrix<double> free(20, given.prior.dim());
      given.prior.sample(1, Stream::check, 0, free);
      const Matrix<double> all = given.all_columns(free);
      for (std::size_t i = 0; i < free.rows(); ++i) {
        const double conditional = log_prob_of(given.prior, {free.row(i).begin(), free.row(i).end()});
        EXPECT_NEAR(log_prob_of(prior, {all.row(i).begin(), all.row(i).end()}), conditional + marginal,
                    1e-11);
      }
    }
  }
}

TEST(ConditionedPrior, OfAJointNormalIsNotItsMarginal) {  // the negative control of the test above
  const std::vector<FixedParameter> fixed = {{"b", 0.7}};
  const PriorTerm rest = condition(mixed("covariance", kCovariance), fixed).prior.terms()[1];
  EXPECT_NEAR(rest.parameters[0].second[0], 1 + 0.6 * 2.7, 1e-12);
  EXPECT_NEAR(rest.parameters[1].second[0], 2.0 - 0.36, 1e-12);
  EXPECT_NEAR(rest.parameters[1].second[1], -0.4 - 0.6 * 0.3, 1e-12);
}

template <class E>
std::string refusal(const Prior& prior, const std::vector<FixedParameter>& fixed) {
  try {
    condition(prior, fixed);
  } catch (const Error& error) {
    EXPECT_EQ(typeid(error), typeid(E)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

TEST(ConditionedPrior, RefusesWhatItCannotFix) {
  const Prior prior = mixed("covariance", kCovariance);
  EXPECT_EQ(refusal<ConfigError>(prior, {{"mas", 1}}),
            "fix: unknown parameter \"mas\"; the parameters are mass, a, b, c, rate; did you mean \"mass\"?");
  EXPECT_EQ(refusal<ConfigError>(prior, {{"a", 1}, {"a", 2}}), "fix: \"a\" is fixed twice; keep one");
  EXPECT_EQ(refusal<ConfigError>(prior, {{"mass", 1}, {"a", 2}, {"b", 2}, {"c", 2}, {"rate", 2}}),
            "fix: all parameters (mass, a, b, c, rate) are fixed; leave at least one free");
  EXPECT_EQ(refusal<DomainError>(prior, {{"mass", 20}}),
            "fix: mass = 20 must be inside the support of its prior, (0.1, 10)");
  EXPECT_EQ(refusal<DomainError>(prior, {{"mass", 0.1}}),
            "fix: mass = 0.1 must be inside the support of its prior, (0.1, 10)");
  EXPECT_EQ(refusal<DomainError>(prior, {{"rate", -1}}),
            "fix: rate = -1 must be inside the support of its prior, (0, inf)");
  EXPECT_EQ(refusal<DomainError>(prior, {{"a", kInf}}), "fix: a = inf must be finite");
  EXPECT_EQ(refusal<DomainError>(prior, {{"a", std::nan("")}}), "fix: a = nan must be finite");
  EXPECT_EQ(
      refusal<UnsupportedError>(Prior::from_samples({"t", "s"}, Matrix<double>(2, 2, {1, 2, 3, 4})),
                                {{"t", 1}}),
      "fix: the prior is given by samples, and a table has no conditional distribution; give [parameters] as "
      "distributions");
  PriorTerm walls = term("uniform", {{"low", {0}}, {"high", {1}}}, {"w"});
  walls.transform = "identity";  // its bounds are points like others
  const Prior square = Prior::from_terms({walls, term("normal", {{"mean", {0}}, {"sd", {1}}}, {"z"})});
  const std::vector<FixedParameter> on_bound = {{"w", 1.0}};
  EXPECT_EQ(condition(square, on_bound).prior.names(), std::vector<std::string>{"z"});
}

TEST(FixedParameters, AreReadFromTexts) {
  const std::vector<std::string> texts = {"mass=1.5", "a b = +2e-3", "x=y=-4"};
  const std::vector<FixedParameter> fixed = read_fixed_parameters(texts);
  ASSERT_EQ(fixed.size(), 3u);
  EXPECT_EQ(fixed[0].name, "mass");
  EXPECT_EQ(fixed[0].value, 1.5);
  EXPECT_EQ(fixed[1].name, "a b");
  EXPECT_EQ(fixed[1].value, 2e-3);
  EXPECT_EQ(fixed[2].name, "x=y");
  const auto refused = [](const std::string& text) -> std::string {
    const std::vector<std::string> one = {text};
    try {
      read_fixed_parameters(one);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused("mass"), "fix: \"mass\" must be name=value, as in mass=1.5");
  EXPECT_EQ(refused("=3"), "fix: \"=3\" must be name=value, as in mass=1.5");
  EXPECT_EQ(refused("mass=heavy"), "fix: mass = \"heavy\" must be a finite number");
  EXPECT_EQ(refused("mass="), "fix: mass = \"\" must be a finite number");
  EXPECT_EQ(refused("mass=1.5kg"), "fix: mass = \"1.5kg\" must be a finite number");
  EXPECT_EQ(refused("mass=inf"), "fix: mass = \"inf\" must be a finite number");
}

}  // namespace
}  // namespace nrec
