#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/random.h"

namespace nrec {

/// One independent part of a prior as a problem file writes it and an estimator file stores it.
struct PriorTerm {
  std::vector<std::string> names;  // one name, or all names of a joint distribution, in column order
  std::string family;              // "uniform", "multivariate_normal", ... (prior_families() lists them)
  /// Numbers by keyword: {"low", {0.1}}, {"mean", {..D..}}, {"covariance", {..D*D row-major..}}.
  std::vector<std::pair<std::string, std::vector<double>>> parameters;
  /// "auto": the bijection that fits the support; "identity": theta itself is the unbounded coordinate
  /// (walls stay walls; the two_moons task of the benchmark wants this).
  std::string transform = "auto";

  bool operator==(const PriorTerm&) const = default;
};

/// Product of independent PriorTerms: density, sampling, support, and a bijection to unbounded space.
///
/// Columns are in the order of the terms and of the names within them. Immutable; copies share state;
/// all members are thread-safe.
class Prior {
 public:
  /// Errors: ConfigError: unknown family or keyword (with the nearest known one), missing keyword, repeated or empty
  /// name, one with a control character; DomainError: a parameter outside its range (not finite, low >= high, scale <= 0, covariance not positive
  /// definite); ShapeError: wrong count of numbers, or several names for a family of one parameter.
  static Prior from_terms(std::vector<PriorTerm> terms);
  /// The empirical prior of a table of thetas [N, D]: sampling picks rows; there is no density.
  /// Errors: ShapeError: no rows or names.size() != D; DomainError: not finite, or a constant column;
  /// ConfigError: repeated or empty name, one with a control character.
  static Prior from_samples(std::vector<std::string> names, Matrix<double> theta);

  std::size_t dim() const;
  const std::vector<std::string>& names() const;
  /// Empty for a prior given by samples.
  const std::vector<PriorTerm>& terms() const;
  /// The table of an empirical prior; empty otherwise.
  const Matrix<double>& samples() const;
  /// False for a prior given by samples: log_prob then throws UnsupportedError.
  bool has_density() const;

  /// theta of rows first_row .. first_row + theta.rows - 1; row i is a pure function of (seed, stream, i).
  ///
  /// Never outside the support, never on a bound whose density is zero or infinite.
  ///
  /// Shapes   theta [n, D] out, n >= 0
  /// Errors   ShapeError: theta.cols != D
  /// Cost     O(n D), one RandomStream per row, one allocation per call
  void sample(std::uint64_t seed, Stream stream, std::uint64_t first_row, MatrixView<double> theta) const;

  /// Normalised natural log density in theta space; -infinity outside the support and at nan.
  ///
  /// Always finite or -infinity: on a bound where the density goes to zero or to infinity (log_normal at 0, gamma with
  /// shape < 1 at 0, beta with alpha < 1 at low) it is -infinity; where it has a positive limit, that limit.
  ///
  /// Shapes   theta [n, D] in; log_prob [n] out
  /// Errors   ShapeError: theta.cols != D or log_prob.size() != n; UnsupportedError: a prior given by samples
  /// Numerics error below 1e-12 max(1, |log_prob|) for parameters and theta of ordinary size
  /// Cost     O(n D), joint terms O(n D^2); at most one small allocation per 256 rows
  void log_prob(MatrixView<const double> theta, std::span<double> log_prob) const;

  /// Whether every coordinate is inside its support (bounds belong to it); nan and infinity are outside, and so is a
  /// theta of any other length than D.
  bool contains(std::span<const double> theta) const;
  /// "[7, 1] (rate) = 6 is outside the prior, 0 to 5": the first coordinate of row i that is; "" where none is.
  /// Errors   ShapeError: theta.size() != D
  std::string outside_text(std::span<const double> theta, std::size_t i) const;

  /// The bijection to unbounded space, applied to each row (logit of the unit interval, log above a bound, identity).
  /// A theta on a bound maps to a large finite number (750 in size), never to infinity or nan; a theta outside the
  /// support of an "auto" term counts as the bound that it passed; nan stays nan.
  ///
  /// Shapes   theta [n, D] in; u [n, D] out (may alias)
  void to_unbounded(MatrixView<const double> theta, MatrixView<double> u) const;

  /// Inverse of to_unbounded; the result is always inside the support for terms with transform "auto" (u of any size:
  /// far out it is the bound, or the largest double where there is no bound). nan stays nan.
  ///
  /// Shapes   u [n, D] in; theta [n, D] out (may alias)
  void to_constrained(MatrixView<const double> u, MatrixView<double> theta) const;

  /// log |d theta / d u| summed over columns, at u: log p_u(u) = log_prob(theta(u)) + this.
  ///
  /// Finite, except -infinity where a half-open support reaches the largest double (u > 709.78) and theta stands still.
  ///
  /// Shapes   u [n, D] in; log_jacobian [n] out
  void log_abs_det_jacobian(MatrixView<const double> u, std::span<double> log_jacobian) const;

  /// Log density in unbounded space and its gradient: log p_u(u) = log_prob(theta(u)) + log |d theta / d u|.
  ///
  /// Where log p_u is -infinity the gradient is 0.
  ///
  /// Shapes   u [n, D] in; log_prob [n] out; d_u [n, D] out
  /// Errors   ShapeError; UnsupportedError: a prior given by samples
  /// Numerics gradient as exact as theta(u): within 1e-16 / p of its size where theta is the fraction p of the support's
  ///          width below an upper bound; may overflow to infinity where log_prob is beyond -1e300
  /// Cost     as log_prob, and a few allocations per call
  void unbounded_log_prob(MatrixView<const double> u, std::span<double> log_prob,
                          MatrixView<double> d_u) const;

  /// Turns gradients with respect to theta into gradients with respect to u: d(i, j) *= d theta_j / d u_j.
  ///
  /// Shapes   u [n, D] in; d [n, D] in-out
  void pull_back(MatrixView<const double> u, MatrixView<double> d) const;

  /// Whether u of column `d` is theta itself. Errors: ShapeError: no such column.
  bool is_identity(std::size_t d) const;

  /// The same distribution with the bijection that fits the support in every term: what "identity" leaves as walls
  /// is then at infinity. A prior given by samples has no density that could need it and is returned as it is.
  Prior without_walls() const;

  /// Lower and upper bound of the support of column `d` (+-infinity where unbounded).
  std::pair<double, double> bounds(std::size_t d) const;

  /// One line per term, for humans: "mass ~ uniform(low = 0.1, high = 10)".
  std::vector<std::string> description() const;

 private:
  struct State;
  explicit Prior(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

/// One family of distributions with the keywords of its PriorTerm, for help texts and checks.
struct PriorFamilyInfo {
  std::string family;
  std::string formula;  // density in ASCII
  std::string support;  // "[low, high]"; a round bracket marks a bound with density zero
  std::vector<std::string>
      keywords;  // e.g. {"location", "scale"}; alternatives "covariance|precision": give one
  std::vector<std::string> meanings;  // of each keyword: what it is and its range
  std::vector<std::string> defaults;  // of each keyword; "" = must be given
  bool joint = false;                 // takes any number of names; the others take one
};
/// All families in the order of the documentation.
const std::vector<PriorFamilyInfo>& prior_families();

}  // namespace nrec
