#include "priors/families.h"

#include <vector>

#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"

namespace nrec {

namespace {

const std::vector<Family>& family_table() {
  static const std::vector<Family> table = {
      {{"uniform",
        "1 / (high - low)",
        "[low, high]",
        {"low", "high"},
        {"lower bound", "upper bound, > low"},
        {"", ""}},
       make_uniform},
      {{"normal",
        "exp(-z^2 / 2) / (sd sqrt(2 pi)), z = (theta - mean) / sd",
        "(-inf, inf)",
        {"mean|location", "sd|scale"},
        {"mean", "standard deviation, > 0"},
        {"", ""}},
       make_normal},
      {{"log_normal",
        "exp(-z^2 / 2) / (theta scale sqrt(2 pi)), z = (log theta - location) / scale",
        "(0, inf)",
        {"location", "scale"},
        {"mean of log theta", "standard deviation of log theta, > 0"},
        {"", ""}},
       make_log_normal},
      {{"multivariate_normal",
        "exp(-(theta - mean)' C^-1 (theta - mean) / 2) / sqrt((2 pi)^D det C)",
        "(-inf, inf)^D",
        {"mean", "covariance|precision"},
        {"D means", "covariance C or its inverse: D x D numbers row by row, symmetric and positive definite"},
        {"", ""},
        true},
       make_multivariate_normal},
      {{"half_normal",
        "sqrt(2 / pi) exp(-(theta / scale)^2 / 2) / scale",
        "[0, inf)",
        {"scale"},
        {"standard deviation of the normal that is folded at 0, > 0"},
        {""}},
       make_half_normal},
      {{"exponential", "rate exp(-rate theta)", "[0, inf)", {"rate"}, {"1 / mean, > 0"}, {""}},
       make_exponential},
      {{"gamma",
        "rate^shape theta^(shape - 1) exp(-rate theta) / Gamma(shape)",
        "(0, inf)",
        {"shape", "rate"},
        {"shape, > 0; the mean is shape / rate", "1 / scale, > 0"},
        {"", ""}},
       make_gamma},
      {{"beta",
        "t^(alpha - 1) (1 - t)^(beta - 1) / (B(alpha, beta) (high - low)), t = (theta - low) / (high - low)",
        "(low, high)",
        {"alpha", "beta", "low", "high"},
        {"power at low, > 0", "power at high, > 0", "lower bound", "upper bound, > low"},
        {"", "", "0", "1"}},
       make_beta},
      {{"student_t",
        "Gamma((v + 1) / 2) (1 + z^2 / v)^(-(v + 1) / 2) / (Gamma(v / 2) sqrt(v pi) scale), z = (theta - "
        "location) / scale",
        "(-inf, inf)",
        {"degrees_of_freedom", "location", "scale"},
        {"v > 0", "centre", "scale, > 0"},
        {"", "", ""}},
       make_student_t},
      {{"truncated_normal",
        "normal(mean, sd) density / (Phi((high - mean) / sd) - Phi((low - mean) / sd))",
        "[low, high]",
        {"mean|location", "sd|scale", "low", "high"},
        {"mean before truncation", "standard deviation before truncation, > 0", "lower bound or -inf",
         "upper bound or inf, > low"},
        {"", "", "-inf", "inf"}},
       make_truncated_normal},
  };
  return table;
}

}  // namespace

std::span<const Family> families() { return family_table(); }

std::unique_ptr<const Distribution> make_distribution(const PriorTerm& term) {
  std::vector<std::string> known;
  for (const Family& family : families()) {
    known.push_back(family.info.family);
    if (family.info.family != term.family) continue;
    if (!family.info.joint && term.names.size() != 1) {
      throw ShapeError("prior of " + names_text(term.names) + ": " + term.family +
                       " describes one parameter but " + std::to_string(term.names.size()) +
                       " names are given; write one term per parameter.");
    }
    return family.make(ParameterReader(term, family.info));
  }
  throw ConfigError("prior of " + names_text(term.names) + ": unknown family '" + one_line_text(term.family) +
                    "'" + suggestion_text(term.family, known, "families"));
}

const std::vector<PriorFamilyInfo>& prior_families() {
  static const std::vector<PriorFamilyInfo> infos = [] {
    std::vector<PriorFamilyInfo> result;
    for (const Family& family : families()) result.push_back(family.info);
    return result;
  }();
  return infos;
}

}  // namespace nrec
