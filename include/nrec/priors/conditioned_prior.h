#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/priors/prior.h"

namespace nrec {

/// A parameter that is held at a value.
struct FixedParameter {
  std::string name;
  double value = 0.0;
};

/// Reads texts like "mass=1.5".
/// Errors   ConfigError: no "=", or no finite number behind it
std::vector<FixedParameter> read_fixed_parameters(std::span<const std::string> texts);

/// The prior of some parameters of a Prior, given the others.
struct ConditionedPrior {
  Prior prior;                            // p(free parameters | fixed ones), columns in their old order
  std::vector<std::string> names;         // [D] of all parameters
  std::vector<double> values;             // [D] nan where free
  std::vector<std::size_t> free_columns;  // [F] ascending

  /// Shapes   free [n, F] in; returns [n, D]: the fixed columns are constant
  Matrix<double> all_columns(MatrixView<const double> free) const;
  /// Shapes   all [n, D] in; returns [n, F]
  Matrix<double> only_free(MatrixView<const double> all) const;
};

/// Conditions a prior on some of its parameters.
///
///   terms that are fixed as a whole are dropped, because terms are independent; of a multivariate normal the rest is
///   normal with mean m_f + C_fx C_xx^-1 (a - m_x) and covariance C_ff - C_fx C_xx^-1 C_xf, or precision P_ff
///
/// Without fixed parameters the prior is returned as it is.
/// Errors   ConfigError: unknown name (with the nearest known one), a name twice, nothing left free; DomainError: a value
///          outside the support or on a bound of a term with transform "auto", where a trained network has seen nothing;
///          UnsupportedError: a prior given by samples, or a part of a joint term whose conditional is not known
/// Source   docs/methods/sampling.md
ConditionedPrior condition(const Prior& prior, std::span<const FixedParameter> fixed);

}  // namespace nrec
