#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace nrec {

/// Whether a trajectory with momenta `first` and `last` at its ends and `sum` of all momenta has turned back.
///
///   not (first . M^-1 sum > 0 and last . M^-1 sum > 0)
///
/// Numerics true for nan.  Source [Betancourt2017, app. A.4.2]
bool has_turned(std::span<const double> first, std::span<const double> last, std::span<const double> sum,
                std::span<const double> inverse_mass);

/// Watches the leaves of one growing subtree of 2^depth momenta for a balanced part that turns back.
///
/// Leaf by leaf instead of by recursion: of the even leaves only the last one with each count of one-bits is kept, which is
/// exactly what the balanced parts that end at the present leaf begin with. A part of four or more leaves is also judged
/// from each of its halves to the first leaf of the other: a trajectory that has closed a full circle turns only there.
/// Source   [Phan2019], [Betancourt2017, app. A.4.2]
class SubtreeTurns {
 public:
  SubtreeTurns(std::size_t dim, int max_depth);

  void begin();
  /// Takes the momentum of the next leaf; true if a balanced part that ends with it has turned.
  /// Errors   at most 2^max_depth leaves may be given (not checked)
  bool add(std::span<const double> momentum, std::span<const double> inverse_mass);
  /// Sum of all momenta since begin().
  std::span<const double> sum() const { return sum_; }

 private:
  struct Checkpoint {
    std::vector<double> momentum;    // of the even leaf
    std::vector<double> previous;    // of the leaf before it
    std::vector<double> sum_before;  // of all momenta before the even leaf
  };
  bool part_turned(const Checkpoint& first, std::span<const double> momentum,
                   std::span<const double> inverse_mass);
  bool halves_turned(const Checkpoint& first, const Checkpoint& middle, std::span<const double> momentum,
                     std::span<const double> inverse_mass);

  std::vector<Checkpoint> checkpoints_;
  std::vector<double> sum_, previous_, part_;
  std::size_t num_leaves_ = 0;
};

}  // namespace nrec
