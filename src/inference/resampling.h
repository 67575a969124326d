#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "inference/pareto_smoothing.h"

namespace nrec {

/// Draws n of S weighted rows by systematic resampling, or says beforehand what that would give.
///
/// Row i comes floor(n w_i) or that plus one times. n draws with copies are worth fewer independent ones:
///
///   effective number = n^2 / sum of copies_i^2        (n when no row comes twice)
///
/// Source   [Kitagawa1996]; the effective number is Kish's
class Resampling {
 public:
  /// The weights must outlive it. Shapes   log_weights [S], as judge_weights() got them
  Resampling(std::span<const double> log_weights, const WeightQuality& quality, std::size_t most_draws);

  /// Expected effective number of `num_draws` <= most_draws draws if there were `growth` times as many rows like these.
  double effective_draws(std::size_t num_draws, double growth = 1.0) const;
  /// The largest number <= most_draws of draws that are worth at least kLeastWorth of as many independent ones.
  std::size_t supported_draws() const;
  /// The factor by which S must grow for most_draws to be supported; infinity when that is above `most`.
  double growth_needed(double most) const;
  /// Rows of num_draws draws in ascending order. Shapes   uniform in (0, 1): the only random number
  std::vector<std::size_t> draw(std::size_t num_draws, double uniform) const;

  /// What a draw must be worth on average.
  static constexpr double kLeastWorth = 0.9;

 private:
  std::span<const double> log_weights_;
  double log_sum_;
  std::size_t most_draws_;
  std::vector<double> heavy_;  // normalised weights above 1 / most_draws: the only ones that can come twice
};

/// Rows of num_draws systematic draws with weights >= 0 that need not be normalised, in ascending order.
///
/// Shapes   uniform in (0, 1): the only random number
std::vector<std::size_t> systematic_rows(std::span<const double> weights, std::size_t num_draws,
                                         double uniform);

/// n^2 / sum of copies^2, and how many rows there are, of ascending rows.
struct Copies {
  std::size_t distinct = 0;
  double effective_draws = 0.0;
};
Copies count_copies(std::span<const std::size_t> rows);

}  // namespace nrec
