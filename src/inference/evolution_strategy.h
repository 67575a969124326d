#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/random.h"

namespace nrec {

/// One search for the maximum of a function by covariance matrix adaptation (CMA-ES), in steps that the caller evaluates:
/// many searches can go to a network together.
///
///   points = mean + sigma A z,  z ~ N(0, I),  A A' = C;  mean, C and sigma follow the better half of the points
///
/// Source   [Hansen2016], with a Cholesky factor for A as in [Suttorp2009]
class EvolutionStrategy {
 public:
  /// Starts at `start` with steps of covariance `covariance` (positive definite; else only its diagonal is used).
  /// Shapes   start [D]; covariance [D, D]
  EvolutionStrategy(std::span<const double> start, Matrix<double> covariance, RandomStream random);

  std::size_t num_points() const { return z_.rows(); }
  /// Points of the next generation. Shapes   points [num_points, D] out
  void ask(MatrixView<double> points);
  /// Their values; minus infinity is worst, nan counts as that. Shapes   points as given by ask(); value [num_points]
  void tell(MatrixView<const double> points, std::span<const double> value);

  /// Whether the best values of 10 + 30 D / num_points generations differ by less than 1e-6, or five times as many brought no
  /// better one.
  bool has_converged() const { return has_converged_; }
  double best_value() const { return best_value_; }
  const std::vector<double>& best_point() const { return best_point_; }

 private:
  void set_strategy();
  bool factorise();
  void move_mean(std::span<const std::size_t> order);
  void adapt_covariance(std::span<const std::size_t> order);
  void look_at(double best_of_generation);

  std::size_t dim_;
  RandomStream random_;
  std::vector<double> mean_;
  Matrix<double> covariance_, factor_;  // C and its lower Cholesky factor A
  double sigma_;
  Matrix<double> z_, step_;      // of the points asked for: z and A z
  std::vector<double> weights_;  // of the better half, best first
  double mass_ = 0.0;            // effective number of those
  double rate_sigma_ = 0.0, damping_ = 0.0, rate_path_ = 0.0, rate_one_ = 0.0, rate_many_ = 0.0;
  std::vector<double> path_sigma_, path_;
  bool path_is_short_ = true;  // of sigma: else sigma is far too small and C waits
  std::size_t generation_ = 0;
  std::vector<double> generation_best_, best_so_far_;  // by generation
  std::vector<double> best_point_;
  double best_value_;
  bool has_converged_ = false;
};

}  // namespace nrec
