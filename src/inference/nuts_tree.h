#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "inference/u_turn.h"
#include "nrec/core/random.h"

namespace nrec {

/// A point of a chain in unbounded space with what the density says there.
struct ChainPoint {
  std::vector<double> u;
  std::vector<double> gradient;
  double log_density = 0.0;
};

/// What one transition did, by ArviZ's names of sampler statistics.
struct TransitionStatistics {
  double acceptance_rate = 0.0;  // mean over the trajectory of min(1, exp(-energy error))
  double energy = 0.0;           // Hamiltonian of the new point with its momentum, in nats
  int tree_depth = 0;            // doublings
  int n_steps = 0;               // leapfrog steps, each one evaluation of the gradient
  bool diverging = false;        // the energy error passed kLargestEnergyError
};

/// One transition of the no-U-turn sampler for one chain, turned inside out: it says where it wants the density, so that the
/// wishes of many chains go to the network together.
///
/// Leapfrog steps are doubled forwards or backwards at random until the trajectory turns back, diverges or has
/// 2^kMaxDepth - 1 steps. The new point is multinomial: by weight exp(-energy error) inside a subtree, and a new subtree
/// replaces the old one with probability min(1, ratio of their weights).
/// Source   [Hoffman2014], [Betancourt2017, app. A], iterative as in [Phan2019]
class NutsTree {
 public:
  static constexpr int kMaxDepth = 10;
  static constexpr double kLargestEnergyError = 1000.0;  // nats [Betancourt2017]

  explicit NutsTree(std::size_t dim);

  /// Starts a transition from `from`, whose log density is finite. All random numbers come from `random`.
  ///
  /// Shapes   inverse_mass [dim], > 0: variances of the posterior; copied
  void begin(const ChainPoint& from, std::span<const double> inverse_mass, double step_size,
             RandomStream random);
  bool is_done() const { return is_done_; }
  /// Where the density is wanted; finite. Not to be called when is_done().
  std::span<const double> pending() const { return moving_.u; }
  /// The log density (-infinity: zero density) and its gradient at pending().
  void receive(double log_density, std::span<const double> gradient);

  /// Of a finished transition.
  const ChainPoint& result() const { return proposal_; }
  TransitionStatistics statistics() const;

 private:
  struct PhasePoint {
    std::vector<double> u, momentum, gradient;
  };
  double energy(double log_density, std::span<const double> momentum) const;
  void begin_subtree();
  void half_kick();
  void drift();
  void take_leaf(double log_density, double energy_error);
  void reject_subtree(bool diverging);
  void join_subtree();
  bool joined_tree_turned() const;

  std::vector<double> inverse_mass_;
  double step_size_ = 0.0;
  RandomStream random_{0, Stream::chain};

  // The tree so far.
  PhasePoint ends_[2];  // earliest, latest
  std::vector<double> momentum_sum_;
  double log_weight_ = 0.0;
  ChainPoint proposal_;
  double initial_energy_ = 0.0, proposal_energy_ = 0.0;
  int depth_ = 0;
  bool is_done_ = true;

  // The subtree that grows.
  PhasePoint moving_;
  int direction_ = 1;  // index of the end it grows from
  SubtreeTurns turns_;
  std::vector<double> first_momentum_;
  std::size_t leaves_left_ = 0;
  double subtree_log_weight_ = 0.0;
  ChainPoint subtree_proposal_;
  double subtree_energy_ = 0.0;

  double acceptance_sum_ = 0.0;
  int n_steps_ = 0;
  bool diverging_ = false;
};

}  // namespace nrec
