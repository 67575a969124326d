#include "inference/u_turn.h"

#include <algorithm>
#include <bit>

namespace nrec {

bool has_turned(std::span<const double> first, std::span<const double> last, std::span<const double> sum,
                std::span<const double> inverse_mass) {
  double at_first = 0.0, at_last = 0.0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    at_first += first[i] * inverse_mass[i] * sum[i];
    at_last += last[i] * inverse_mass[i] * sum[i];
  }
  return !(at_first > 0.0 && at_last > 0.0);
}

SubtreeTurns::SubtreeTurns(std::size_t dim, int max_depth)
    : checkpoints_(static_cast<std::size_t>(max_depth) + 1,
                   {std::vector<double>(dim), std::vector<double>(dim), std::vector<double>(dim)}),
      sum_(dim),
      previous_(dim),
      part_(dim) {}

void SubtreeTurns::begin() {
  num_leaves_ = 0;
  std::fill(sum_.begin(), sum_.end(), 0.0);
  std::fill(previous_.begin(), previous_.end(), 0.0);
}

bool SubtreeTurns::part_turned(const Checkpoint& first, std::span<const double> momentum,
                               std::span<const double> inverse_mass) {
  for (std::size_t i = 0; i < part_.size(); ++i) part_[i] = sum_[i] - first.sum_before[i];
  return has_turned(first.momentum, momentum, part_, inverse_mass);
}

bool SubtreeTurns::halves_turned(const Checkpoint& first, const Checkpoint& middle,
                                 std::span<const double> momentum, std::span<const double> inverse_mass) {
  for (std::size_t i = 0; i < part_.size(); ++i)
    part_[i] = middle.sum_before[i] - first.sum_before[i] + middle.momentum[i];
  if (has_turned(first.momentum, middle.momentum, part_, inverse_mass)) return true;
  for (std::size_t i = 0; i < part_.size(); ++i)
    part_[i] = sum_[i] - middle.sum_before[i] + middle.previous[i];
  return has_turned(middle.previous, momentum, part_, inverse_mass);
}

bool SubtreeTurns::add(std::span<const double> momentum, std::span<const double> inverse_mass) {
  const std::size_t leaf = num_leaves_++;
  const auto place = [](std::size_t even_leaf) { return static_cast<std::size_t>(std::popcount(even_leaf)); };
  bool turned = false;
  if (leaf % 2 == 0) {
    Checkpoint& here = checkpoints_[place(leaf)];
    std::copy(momentum.begin(), momentum.end(), here.momentum.begin());
    here.previous = previous_;
    here.sum_before = sum_;
  }
  for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += momentum[i];
  // The balanced parts that end here have 2, 4, ... 2^k leaves, k the number of one-bits at the end of the leaf's number.
  for (std::size_t size = 2; size <= (std::size_t{1} << std::countr_one(leaf)) && !turned; size *= 2) {
    const Checkpoint& first = checkpoints_[place(leaf + 1 - size)];
    turned = part_turned(first, momentum, inverse_mass);
    if (size > 2 && !turned)
      turned = halves_turned(first, checkpoints_[place(leaf + 1 - size / 2)], momentum, inverse_mass);
  }
  std::copy(momentum.begin(), momentum.end(), previous_.begin());
  return turned;
}

}  // namespace nrec
