// Every refusal of a prior: its type and its text.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nrec/core/error.h"
#include "nrec/priors/prior.h"
#include "priors/tests/prior_cases.h"

namespace nrec {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The text of the refusal; the type must be exactly E.
template <class E, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(typeid(error), typeid(E)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

template <class E>
std::string refused_term(PriorTerm one) {
  return refusal<E>([&] { Prior::from_terms({one}); });
}

TEST(PriorRefusals, UnknownFamilyNamesTheNearest) {
  EXPECT_EQ(refused_term<ConfigError>(term("unifrom", {{"low", {0}}, {"high", {1}}}, {"mass"})),
            "prior of 'mass': unknown family 'unifrom'; did you mean 'uniform'? The families are uniform, "
            "normal, log_normal, "
            "multivariate_normal, half_normal, exponential, gamma, beta, student_t, truncated_normal.");
  EXPECT_NE(
      refused_term<ConfigError>(term("zzz", {})).find("unknown family 'zzz'; the families are uniform,"),
      std::string::npos);
}

TEST(PriorRefusals, KeywordsUnknownMissingOrTwice) {
  EXPECT_EQ(
      refused_term<ConfigError>(term("uniform", {{"lo", {0}}, {"high", {1}}}, {"mass"})),
      "prior of 'mass': uniform: unknown keyword 'lo'; did you mean 'low'? The keywords are low, high.");
  EXPECT_EQ(refused_term<ConfigError>(term("gamma", {{"shape", {2}}})),
            "prior of 'a': gamma: keyword rate is missing; give it (1 / scale, > 0).");
  EXPECT_EQ(refused_term<ConfigError>(term("normal", {{"sd", {2}}})),
            "prior of 'a': normal: keyword mean or location is missing; give it (mean).");
  EXPECT_EQ(refused_term<ConfigError>(term("exponential", {{"rate", {2}}, {"rate", {2}}})),
            "prior of 'a': exponential: keyword 'rate' is given twice; keep one.");
  EXPECT_EQ(refused_term<ConfigError>(term("normal", {{"mean", {2}}, {"sd", {2}}, {"scale", {2}}})),
            "prior of 'a': normal: both sd and scale are given; keep one of them.");
  EXPECT_EQ(refused_term<ConfigError>(
                term("multivariate_normal", {{"mean", {0}}, {"covariance", {1}}, {"precision", {1}}})),
            "prior of 'a': multivariate_normal: both covariance and precision are given; keep one of them.");
}

TEST(PriorRefusals, NumbersOutOfRange) {
  EXPECT_EQ(refused_term<DomainError>(term("uniform", {{"low", {3}}, {"high", {1}}})),
            "prior of 'a': uniform: low = 3 and high = 1 but low must be below high; swap or correct them.");
  EXPECT_NE(refused_term<DomainError>(term("beta", {{"alpha", {1}}, {"beta", {1}}, {"low", {1}}}))
                .find("low = 1 and high = 1 but"),
            std::string::npos);
  EXPECT_EQ(refused_term<DomainError>(term("normal", {{"mean", {0}}, {"sd", {0}}})),
            "prior of 'a': normal: sd = 0 must be > 0.");
  EXPECT_EQ(refused_term<DomainError>(term("half_normal", {{"scale", {-2}}})),
            "prior of 'a': half_normal: scale = -2 must be > 0.");
  EXPECT_EQ(refused_term<DomainError>(term("normal", {{"mean", {std::nan("")}}, {"sd", {1}}})),
            "prior of 'a': normal: mean = nan must be a finite number.");
  EXPECT_EQ(refused_term<DomainError>(term("uniform", {{"low", {0}}, {"high", {kInf}}})),
            "prior of 'a': uniform: high = inf must be a finite number.");
  EXPECT_EQ(refused_term<DomainError>(
                term("truncated_normal", {{"mean", {0}}, {"sd", {1}}, {"low", {std::nan("")}}})),
            "prior of 'a': truncated_normal: low = nan must be a number or an infinity.");
  EXPECT_NE(refused_term<DomainError>(term("uniform", {{"low", {-1e308}}, {"high", {1e308}}}))
                .find("further apart than the largest double"),
            std::string::npos);
  EXPECT_NE(refused_term<DomainError>(term("uniform", {{"low", {1}}, {"high", {std::nextafter(1.0, 2.0)}}}))
                .find("no number between them"),
            std::string::npos);
  EXPECT_EQ(
      refused_term<DomainError>(term("truncated_normal", {{"mean", {0}}, {"sd", {1e-150}}, {"low", {1}}})),
      "prior of 'a': truncated_normal: low = 1 is more than 1e100 sd from mean = 0; choose a larger sd or a "
      "nearer bound.");
  EXPECT_NE(refused_term<DomainError>(term("gamma", {{"shape", {1e-200}}, {"rate", {1e200}}}))
                .find("the mean shape / rate = 1e-200 / 1e+200 is outside"),
            std::string::npos);
}

TEST(PriorRefusals, MatricesThatAreNoCovariance) {
  const auto joint = [](std::vector<double> covariance) {
    return term("multivariate_normal", {{"mean", {0, 0}}, {"covariance", std::move(covariance)}}, {"a", "b"});
  };
  EXPECT_EQ(refused_term<DomainError>(joint({1, 0.5, 0.25, 1})),
            "prior of ('a', 'b'): multivariate_normal: covariance[1][0] = 0.25 but covariance[0][1] = 0.5; a "
            "covariance must be symmetric.");
  EXPECT_NE(refused_term<DomainError>(joint({1, 2, 2, 1}))
                .find("covariance is not positive definite (pivot 1 of its Cholesky factor is -3)"),
            std::string::npos);
  EXPECT_NE(refused_term<DomainError>(joint({1, 1, 1, 1})).find("not positive definite"), std::string::npos);
  EXPECT_NE(refused_term<DomainError>(joint({0, 0, 0, 1})).find("not positive definite (pivot 0"),
            std::string::npos);
  EXPECT_NE(
      refused_term<DomainError>(joint({1, 0, 0, kInf})).find("covariance[3] = inf must be a finite number."),
      std::string::npos);
}

TEST(PriorRefusals, WrongCounts) {
  EXPECT_EQ(refused_term<ShapeError>(term("uniform", {{"low", {0, 0}}, {"high", {1}}})),
            "prior of 'a': uniform: low has 2 numbers but must have 1.");
  EXPECT_EQ(refused_term<ShapeError>(term("uniform", {{"low", {0}}, {"high", {1}}}, {"a", "b"})),
            "prior of ('a', 'b'): uniform describes one parameter but 2 names are given; write one term per "
            "parameter.");
  EXPECT_EQ(refused_term<ShapeError>(
                term("multivariate_normal", {{"mean", {0, 0}}, {"covariance", {1, 0, 1}}}, {"a", "b"})),
            "prior of ('a', 'b'): multivariate_normal: covariance has 3 numbers but 2 names need 4.");
}

TEST(PriorRefusals, NamesAndTransforms) {
  EXPECT_EQ(refusal<ConfigError>([] { Prior::from_terms({}); }),
            "prior: there are no parameters; give at least one.");
  EXPECT_EQ(refused_term<ConfigError>(term("uniform", {{"low", {0}}, {"high", {1}}}, {""})),
            "prior: a parameter has an empty name; give every parameter a name.");
  EXPECT_EQ(refused_term<ConfigError>(term("uniform", {{"low", {0}}, {"high", {1}}}, {})),
            "prior: a term of family 'uniform' has no names; name its parameters.");
  const PriorTerm one = term("uniform", {{"low", {0}}, {"high", {1}}});
  EXPECT_EQ(refusal<ConfigError>([&] {
              Prior::from_terms({one, one});
            }),
            "prior: the name 'a' is used twice; give every parameter its own name.");
  PriorTerm odd = one;
  odd.transform = "identiy";
  EXPECT_EQ(refused_term<ConfigError>(odd),
            "prior of 'a': unknown transform 'identiy'; did you mean 'identity'? The transforms are auto, "
            "identity.");
}

TEST(PriorRefusals, TablesOfSamples) {
  EXPECT_EQ(refusal<ShapeError>([] { Prior::from_samples({"a"}, Matrix<double>(0, 1)); }),
            "prior given by samples: the table of thetas is empty; give at least two rows.");
  EXPECT_EQ(refusal<ShapeError>([] {
              Prior::from_samples({"a"}, Matrix<double>(2, 2, {1, 2, 3, 4}));
            }),
            "prior given by samples: 1 names for 2 columns; give one name per column.");
  EXPECT_EQ(
      refusal<DomainError>([] {
        Prior::from_samples({"a"}, Matrix<double>(2, 1, {1, std::nan("")}));
      }),
      "prior given by samples: theta of 'a' in row 1 is nan; every number must be finite, remove such rows.");
  EXPECT_EQ(
      refusal<DomainError>([] {
        Prior::from_samples({"a", "b"}, Matrix<double>(2, 2, {1, 7, 2, 7}));
      }),
      "prior given by samples: 'b' is 7 in every row; a constant is not a parameter, leave the column out.");
  EXPECT_EQ(refusal<ConfigError>([] {
              Prior::from_samples({"a", "a"}, Matrix<double>(2, 2, {1, 2, 3, 4}));
            }),
            "prior: the name 'a' is used twice; give every parameter its own name.");
  const Prior prior = Prior::from_samples({"a"}, Matrix<double>(2, 1, {1, 2}));
  double theta = 1.0, log_prob = 0.0;
  EXPECT_EQ(refusal<UnsupportedError>([&] {
              prior.log_prob({&theta, 1, 1}, {&log_prob, 1});
            }),
            "prior given by samples: it has no density, so log_prob cannot be computed; state the prior by "
            "its families ([parameters] with "
            "prior = \"uniform\" and so on), or use a method that only draws from the prior (importance "
            "resampling or rejection).");
}

TEST(PriorRefusals, ArraysOfTheWrongShape) {
  const Prior prior = Prior::from_terms({term("uniform", {{"low", {0}}, {"high", {1}}})});
  Matrix<double> two(3, 2), one(3, 1);
  std::vector<double> out(2);
  EXPECT_EQ(refusal<ShapeError>([&] { prior.sample(1, Stream::prior, 0, two); }),
            "prior: sample: theta has 2 columns but the prior has 1 parameters.");
  EXPECT_EQ(refusal<ShapeError>([&] { prior.log_prob(one, out); }),
            "prior: log_prob: log_prob has room for 2 rows but 3 are given.");
  EXPECT_EQ(refusal<ShapeError>([&] { prior.to_unbounded(one, two); }),
            "prior: to_unbounded: u has 2 columns but the prior has 1 parameters.");
  EXPECT_EQ(refusal<ShapeError>([&] { prior.to_constrained(two, one); }),
            "prior: to_constrained: u has 2 columns but the prior has 1 parameters.");
  EXPECT_EQ(refusal<ShapeError>([&] { prior.log_abs_det_jacobian(one, out); }),
            "prior: log_abs_det_jacobian: log_jacobian has room for 2 rows but 3 are given.");
  EXPECT_EQ(refusal<ShapeError>([&] { prior.bounds(1); }),
            "prior: bounds: column 1 of a prior of 1 parameters.");
  EXPECT_FALSE(prior.contains(std::vector<double>{0.5, 0.5}));
}

TEST(PriorRefusals, NamesThatATerminalWouldObey) {
  EXPECT_EQ(
      refused_term<ConfigError>(term("uniform", {{"low", {0}}, {"high", {1}}}, {"ma\x1b[31mss"})),
      "prior: the parameter name \"ma\\x1b[31mss\" holds a control character, which tables and terminals "
      "cannot show; rename it.");
  EXPECT_EQ(
      refusal<ConfigError>([] {
        Prior::from_samples({"a\nb"}, Matrix<double>(2, 1, std::vector<double>{1, 2}));
      }),
      "prior: the parameter name \"a\\x0ab\" holds a control character, which tables and terminals cannot "
      "show; rename it.");
  EXPECT_EQ(refused_term<ConfigError>(term("uni\x1b[1m", {}, {"a"})).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace nrec
