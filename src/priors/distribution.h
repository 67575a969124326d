#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "nrec/core/array.h"
#include "nrec/core/random.h"

namespace nrec {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kLargest = std::numeric_limits<double>::max();

/// The distribution of one term of a prior: one column, or the columns of a joint distribution.
///
/// Every call works on a block of rows, so that the virtual call is paid per term and block, not per number.
class Distribution {
 public:
  Distribution() = default;
  Distribution(const Distribution&) = delete;
  Distribution& operator=(const Distribution&) = delete;
  virtual ~Distribution() = default;

  virtual std::size_t dim() const = 0;
  /// Row i draws from random[i] and leaves it where the next term goes on.
  /// Shapes   random [n] in-out; theta [n, dim] out
  virtual void sample(std::span<RandomStream> random, MatrixView<double> theta) const = 0;
  /// Adds the log density of each row: a finite number or -infinity, never nan.
  /// Shapes   theta [n, dim] in; log_prob [n] in-out
  virtual void add_log_prob(MatrixView<const double> theta, std::span<double> log_prob) const = 0;
  /// Adds the gradient of the log density in unbounded coordinates, the Jacobian's part left out:
  /// d_u += slope * d log density / d theta with slope = d theta / d u. Adds 0 where the density is zero.
  ///
  /// The slope is a factor inside, because near a bound the derivative alone overflows where the product is small.
  /// Shapes   theta, slope [n, dim] in; d_u [n, dim] in-out
  virtual void add_gradient(MatrixView<const double> theta, MatrixView<const double> slope,
                            MatrixView<double> d_u) const = 0;
  /// Closed interval that holds column `d`; infinite where unbounded.
  virtual std::pair<double, double> bounds(std::size_t d) const = 0;
};

/// A distribution of one column, made from the inlined members of `Derived`:
///   double draw(RandomStream&) const;
///   double log_density(double theta) const;
///   double scaled_score(double theta, double slope) const;  slope * d log_density / d theta, where the density is > 0
///   std::pair<double, double> support() const;
template <class Derived>
class ScalarDistribution : public Distribution {
 public:
  std::size_t dim() const final { return 1; }
  void sample(std::span<RandomStream> random, MatrixView<double> theta) const final {
    // Rounding may step over a bound or past the largest double.
    const double lowest = std::max(self().support().first, -kLargest);
    const double highest = std::min(self().support().second, kLargest);
    for (std::size_t i = 0; i < random.size(); ++i)
      theta(i, 0) = std::clamp(self().draw(random[i]), lowest, highest);
  }
  void add_log_prob(MatrixView<const double> theta, std::span<double> log_prob) const final {
    for (std::size_t i = 0; i < log_prob.size(); ++i) log_prob[i] += self().log_density(theta(i, 0));
  }
  void add_gradient(MatrixView<const double> theta, MatrixView<const double> slope,
                    MatrixView<double> d_u) const final {
    for (std::size_t i = 0; i < theta.rows; ++i) {
      if (self().log_density(theta(i, 0)) > -kInfinity)
        d_u(i, 0) += self().scaled_score(theta(i, 0), slope(i, 0));
    }
  }
  std::pair<double, double> bounds(std::size_t) const final { return self().support(); }

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

/// The value, or -infinity for nan and +infinity (overflow far outside).
inline double finite_or_minus_infinity(double log_density) {
  return log_density < kInfinity ? log_density : -kInfinity;
}

}  // namespace nrec
