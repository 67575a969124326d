#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nrec/priors/prior.h"

namespace nrec {

/// One distribution of one parameter with its truth, for the contract suite.
struct PriorCase {
  std::string label;
  PriorTerm term;
  std::function<long double(long double)> pdf;
  std::function<long double(long double)> cdf;
  std::function<long double(long double)> quantile;
  double mean = 0.0;  // used if has_moments
  double sd = 1.0;
  bool has_moments = true;  // mean, sd and the fourth moment exist
  double integral_tolerance =
      1e-9;  // larger where the density diverges on a bound that is not zero: theta rounds there
};

const std::vector<PriorCase>& prior_cases();

inline PriorTerm term(std::string family, std::vector<std::pair<std::string, std::vector<double>>> parameters,
                      std::vector<std::string> names = {"a"}) {
  return {std::move(names), std::move(family), std::move(parameters)};
}

}  // namespace nrec
