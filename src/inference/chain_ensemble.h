#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "inference/mode_jumps.h"
#include "inference/sampling_budget.h"
#include "nrec/core/array.h"
#include "nrec/core/random.h"
#include "nrec/inference/posterior.h"

namespace nrec {

/// A point in unbounded space whose log density is log_prior + exponent log_ratio.
struct TemperedPoint {
  std::vector<double> u;   // [D] of Posterior::unbounded_prior()
  double log_prior = 0.0;  // density of theta and Jacobian
  double log_ratio = 0.0;

  double log_density(double exponent) const { return log_prior + exponent * log_ratio; }
};

/// Values at several points, for a sampler that has not yet decided to go there.
struct TemperedValues {
  std::vector<double> log_prior, log_ratio;
};

/// log_prior and log_ratio at rows of u. Where the prior has no density the network is not asked: both are minus infinity.
///
/// Shapes   u [n, D]
/// Cost     at most n evaluations, which the budget is charged with
TemperedValues evaluate_tempered(const Posterior& posterior, MatrixView<const double> u,
                                 SamplingBudget& budget);

/// Coordinate-wise slice sampling of many chains in unbounded space [Neal2003]; the pending points of all chains go to the
/// network together. Bracket widths are common to all chains.
class ChainEnsemble {
 public:
  /// Chain c draws from (seed, Stream::chain, first_row + c). All references must outlive it.
  /// Shapes   width [D], > 0: of the first brackets
  ChainEnsemble(const Posterior& posterior, SamplingBudget& budget, std::uint64_t seed,
                std::uint64_t first_row, std::vector<TemperedPoint> points, std::vector<double> width);

  const std::vector<TemperedPoint>& points() const { return points_; }
  const std::vector<double>& width() const { return width_; }
  /// Puts the chains elsewhere, as many as before.
  void move_to(std::vector<TemperedPoint> points) { points_ = std::move(points); }

  /// Every chain updates every coordinate once, in its own random order, leaving prior x ratio^exponent as it is. False when
  /// the budget ended first: the chains are then in the middle of the sweep.
  bool sweep(double exponent);
  /// Every chain tries a few jumps, of all coordinates and of some in turn. False when the budget ended first.
  bool jump(const ModeJumps& jumps, double exponent);
  /// Moves the widths to the brackets of the last sweep: by `share` of the way, in logarithms.
  void adapt_widths(double share);
  /// Share of jumps that were accepted.
  double jump_rate() const;

 private:
  enum class Phase { lower, upper, shrink };
  /// What a chain waits for.
  struct Move {
    RandomStream random;
    std::vector<std::uint32_t> order;
    std::vector<double> bracket;      // [D] last ones
    std::size_t next_coordinate = 0;  // place in `order`
    double level = 0, lower = 0, upper = 0, trial = 0;
    std::size_t steps_lower = 0, steps_upper = 0;
    Phase phase = Phase::lower;

    std::size_t coordinate() const { return order[next_coordinate]; }
  };

  void begin_coordinate(std::size_t chain);
  void begin_shrinking(Move& move);
  bool step_out(Move& move, bool is_inside);
  bool shrink(std::size_t chain, bool is_inside, double log_prior, double log_ratio);
  bool advance(std::size_t chain, double log_prior, double log_ratio);

  const Posterior& posterior_;
  SamplingBudget& budget_;
  std::vector<TemperedPoint> points_;
  std::vector<double> width_;
  std::vector<Move> moves_;
  double exponent_ = 1.0;
  std::size_t jumps_tried_ = 0, jumps_accepted_ = 0;
};

}  // namespace nrec
