#pragma once

#include <memory>
#include <span>
#include <string>

#include "nrec/priors/prior.h"
#include "priors/distribution.h"
#include "priors/parameter_reader.h"

namespace nrec {

/// A family as the table of all families holds it.
struct Family {
  PriorFamilyInfo info;
  std::unique_ptr<const Distribution> (*make)(const ParameterReader& parameters);
};

/// All families in the order of the documentation. A new family joins here
/// (docs/howto/add_a_distribution.md).
std::span<const Family> families();

/// The distribution of a term. Errors: as Prior::from_terms.
std::unique_ptr<const Distribution> make_distribution(const PriorTerm& term);

// The makers, one file per group.
std::unique_ptr<const Distribution> make_uniform(const ParameterReader& parameters);      // interval.cc
std::unique_ptr<const Distribution> make_beta(const ParameterReader& parameters);         // interval.cc
std::unique_ptr<const Distribution> make_normal(const ParameterReader& parameters);       // normal.cc
std::unique_ptr<const Distribution> make_log_normal(const ParameterReader& parameters);   // normal.cc
std::unique_ptr<const Distribution> make_half_normal(const ParameterReader& parameters);  // normal.cc
std::unique_ptr<const Distribution> make_student_t(const ParameterReader& parameters);    // normal.cc
std::unique_ptr<const Distribution> make_exponential(const ParameterReader& parameters);  // gamma.cc
std::unique_ptr<const Distribution> make_gamma(const ParameterReader& parameters);        // gamma.cc
std::unique_ptr<const Distribution> make_truncated_normal(
    const ParameterReader& parameters);  // truncated_normal.cc
std::unique_ptr<const Distribution> make_multivariate_normal(
    const ParameterReader& parameters);  // multivariate_normal.cc

}  // namespace nrec
