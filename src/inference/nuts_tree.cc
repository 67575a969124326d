#include "inference/nuts_tree.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nrec {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double log_sum(double a, double b) {
  const double top = std::max(a, b);
  return top == -kInfinity ? top : top + std::log1p(std::exp(-std::fabs(a - b)));
}

}  // namespace

NutsTree::NutsTree(std::size_t dim) : momentum_sum_(dim), turns_(dim, kMaxDepth), first_momentum_(dim) {
  moving_ = {std::vector<double>(dim), std::vector<double>(dim), std::vector<double>(dim)};
  ends_[0] = ends_[1] = moving_;
}

double NutsTree::energy(double log_density, std::span<const double> momentum) const {
  double kinetic = 0.0;
  for (std::size_t i = 0; i < momentum.size(); ++i) kinetic += momentum[i] * momentum[i] * inverse_mass_[i];
  return 0.5 * kinetic - log_density;
}

void NutsTree::begin(const ChainPoint& from, std::span<const double> inverse_mass, double step_size,
                     RandomStream random) {
  inverse_mass_.assign(inverse_mass.begin(), inverse_mass.end());
  step_size_ = step_size;
  random_ = random;
  for (std::size_t i = 0; i < momentum_sum_.size(); ++i)
    momentum_sum_[i] = random_.normal() / std::sqrt(inverse_mass_[i]);
  ends_[0].u = from.u;
  ends_[0].momentum = momentum_sum_;
  ends_[0].gradient = from.gradient;
  ends_[1] = ends_[0];
  proposal_ = from;
  initial_energy_ = proposal_energy_ = energy(from.log_density, momentum_sum_);
  log_weight_ = 0.0;
  depth_ = n_steps_ = 0;
  acceptance_sum_ = 0.0;
  diverging_ = is_done_ = false;
  begin_subtree();
}

void NutsTree::begin_subtree() {
  direction_ = random_.uniform() < 0.5 ? 0 : 1;
  moving_ = ends_[direction_];
  leaves_left_ = std::size_t{1} << depth_;
  subtree_log_weight_ = -kInfinity;
  turns_.begin();
  drift();
}

void NutsTree::half_kick() {
  const double half = (direction_ == 1 ? 0.5 : -0.5) * step_size_;
  for (std::size_t i = 0; i < moving_.u.size(); ++i) moving_.momentum[i] += half * moving_.gradient[i];
}

/// First half of a leapfrog step: up to the point whose gradient the second half needs.
void NutsTree::drift() {
  half_kick();
  const double step = direction_ == 1 ? step_size_ : -step_size_;
  bool is_finite = true;
  for (std::size_t i = 0; i < moving_.u.size(); ++i) {
    moving_.u[i] += step * inverse_mass_[i] * moving_.momentum[i];
    is_finite = is_finite && std::isfinite(moving_.u[i]);
  }
  if (is_finite) return;
  ++n_steps_;  // overflow: there is no point to ask for
  reject_subtree(true);
}

void NutsTree::receive(double log_density, std::span<const double> gradient) {
  std::copy(gradient.begin(), gradient.end(), moving_.gradient.begin());
  half_kick();
  ++n_steps_;
  const double error = energy(log_density, moving_.momentum) - initial_energy_;
  if (!(error <= kLargestEnergyError)) {  // nan included
    reject_subtree(true);
    return;
  }
  take_leaf(log_density, error);
}

void NutsTree::take_leaf(double log_density, double energy_error) {
  acceptance_sum_ += std::min(1.0, std::exp(-energy_error));
  if (leaves_left_ == std::size_t{1} << depth_) first_momentum_ = moving_.momentum;
  subtree_log_weight_ = log_sum(subtree_log_weight_, -energy_error);
  if (std::log(random_.uniform()) < -energy_error - subtree_log_weight_) {
    subtree_proposal_.u = moving_.u;
    subtree_proposal_.gradient = moving_.gradient;
    subtree_proposal_.log_density = log_density;
    subtree_energy_ = initial_energy_ + energy_error;
  }
  const bool turned = turns_.add(moving_.momentum, inverse_mass_);
  --leaves_left_;
  if (turned) {
    reject_subtree(false);
  } else if (leaves_left_ == 0) {
    join_subtree();
  } else {
    drift();
  }
}

void NutsTree::reject_subtree(bool diverging) {
  diverging_ = diverging;
  is_done_ = true;
}

void NutsTree::join_subtree() {
  if (std::log(random_.uniform()) < subtree_log_weight_ - log_weight_) {
    std::swap(proposal_, subtree_proposal_);
    proposal_energy_ = subtree_energy_;
  }
  log_weight_ = log_sum(log_weight_, subtree_log_weight_);
  const bool turned = joined_tree_turned();
  for (std::size_t i = 0; i < momentum_sum_.size(); ++i) momentum_sum_[i] += turns_.sum()[i];
  std::swap(ends_[direction_], moving_);
  ++depth_;
  is_done_ = turned || depth_ == kMaxDepth;
  if (!is_done_) begin_subtree();
}

/// The whole tree, and each of its halves with the nearest leaf of the other.
bool NutsTree::joined_tree_turned() const {
  const std::vector<double>& old_far = ends_[1 - direction_].momentum;
  const std::vector<double>& old_near = ends_[direction_].momentum;
  const std::vector<double>& new_far = moving_.momentum;
  const std::span<const double> new_sum = turns_.sum();
  std::vector<double> sum(momentum_sum_.size());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = momentum_sum_[i] + new_sum[i];
  if (has_turned(old_far, new_far, sum, inverse_mass_)) return true;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = momentum_sum_[i] + first_momentum_[i];
  if (has_turned(old_far, first_momentum_, sum, inverse_mass_)) return true;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = old_near[i] + new_sum[i];
  return has_turned(old_near, new_far, sum, inverse_mass_);
}

TransitionStatistics NutsTree::statistics() const {
  return {.acceptance_rate = acceptance_sum_ / static_cast<double>(std::max(1, n_steps_)),
          .energy = proposal_energy_,
          .tree_depth = depth_,
          .n_steps = n_steps_,
          .diverging = diverging_};
}

}  // namespace nrec
