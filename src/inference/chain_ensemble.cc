#include "inference/chain_ensemble.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace nrec {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr std::size_t kMostSteps = 1000;  // of stepping out, split at random between the sides [Neal2003]
// After a sweep. On slcp six make draws worth three times what two make, for a tenth more evaluations.
constexpr std::size_t kJumps = 6;

}  // namespace

TemperedValues evaluate_tempered(const Posterior& posterior, MatrixView<const double> u,
                                 SamplingBudget& budget) {
  const Prior& space = posterior.unbounded_prior();
  const std::size_t n = u.rows;
  TemperedValues values{std::vector<double>(n), std::vector<double>(n, kMinusInfinity)};
  Matrix<double> theta(n, u.cols);
  std::vector<double> jacobian(n);
  space.to_constrained(u, theta);
  space.log_prob(theta, values.log_prior);
  space.log_abs_det_jacobian(u, jacobian);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < n; ++i) {
    values.log_prior[i] += jacobian[i];
    if (!std::isfinite(values.log_prior[i])) {
      values.log_prior[i] = kMinusInfinity;
      continue;
    }
    if (rows.size() < i) std::copy(theta.row(i).begin(), theta.row(i).end(), theta.row(rows.size()).begin());
    rows.push_back(i);
  }
  std::vector<double> log_ratio(rows.size());
  if (!rows.empty()) posterior.log_ratio(theta.view().middle_rows(0, rows.size()), log_ratio);
  for (std::size_t k = 0; k < rows.size(); ++k) values.log_ratio[rows[k]] = log_ratio[k];
  budget.spend(rows.size());
  return values;
}

ChainEnsemble::ChainEnsemble(const Posterior& posterior, SamplingBudget& budget, std::uint64_t seed,
                             std::uint64_t first_row, std::vector<TemperedPoint> points,
                             std::vector<double> width)
    : posterior_(posterior), budget_(budget), points_(std::move(points)), width_(std::move(width)) {
  for (std::size_t c = 0; c < points_.size(); ++c) {
    Move move{.random = RandomStream(seed, Stream::chain, first_row + c),
              .order = std::vector<std::uint32_t>(width_.size()),
              .bracket = width_};
    std::iota(move.order.begin(), move.order.end(), 0u);
    moves_.push_back(std::move(move));
  }
}

void ChainEnsemble::begin_coordinate(std::size_t chain) {
  Move& move = moves_[chain];
  const std::size_t d = move.coordinate();
  move.level = points_[chain].log_density(exponent_) + std::log(move.random.uniform());
  move.lower = points_[chain].u[d] - width_[d] * move.random.uniform();
  move.upper = move.lower + width_[d];
  move.steps_lower = static_cast<std::size_t>(move.random.uniform() * static_cast<double>(kMostSteps));
  move.steps_upper = kMostSteps - 1 - move.steps_lower;
  move.phase = Phase::lower;
  move.trial = move.lower;
}

void ChainEnsemble::begin_shrinking(Move& move) {
  move.phase = Phase::shrink;
  move.trial = move.random.uniform(move.lower, move.upper);
}

/// Takes whether the density at an end of the bracket is above the level; false when the bracket is done.
bool ChainEnsemble::step_out(Move& move, bool is_inside) {
  const double width = width_[move.coordinate()];
  if (move.phase == Phase::lower) {
    if (is_inside && move.steps_lower > 0) {
      --move.steps_lower;
      move.trial = move.lower -= width;
    } else {
      move.phase = Phase::upper;
      move.trial = move.upper;
    }
    return true;
  }
  if (!is_inside || move.steps_upper == 0) return false;
  --move.steps_upper;
  move.trial = move.upper += width;
  return true;
}

/// Takes the values at the trial point inside the bracket; true when the coordinate is done.
bool ChainEnsemble::shrink(std::size_t chain, bool is_inside, double log_prior, double log_ratio) {
  Move& move = moves_[chain];
  TemperedPoint& point = points_[chain];
  const std::size_t d = move.coordinate();
  if (is_inside) {
    point.u[d] = move.trial;
    point.log_prior = log_prior;
    point.log_ratio = log_ratio;
  } else {
    (move.trial < point.u[d] ? move.lower : move.upper) = move.trial;
    // A bracket of neighbouring numbers cannot shrink: stay, which leaves the distribution as it is.
    if (move.upper > std::nextafter(move.lower, move.upper)) {
      begin_shrinking(move);
      return false;
    }
  }
  move.bracket[d] = move.upper - move.lower;
  return true;
}

/// Takes the values at the trial point; true when the coordinate is done.
bool ChainEnsemble::advance(std::size_t chain, double log_prior, double log_ratio) {
  Move& move = moves_[chain];
  const double log_density = log_ratio == kMinusInfinity ? kMinusInfinity : log_prior + exponent_ * log_ratio;
  const bool is_inside = log_density >= move.level;
  if (move.phase == Phase::shrink) return shrink(chain, is_inside, log_prior, log_ratio);
  if (!step_out(move, is_inside)) begin_shrinking(move);
  return false;
}

bool ChainEnsemble::sweep(double exponent) {
  exponent_ = exponent;
  std::vector<std::size_t> active(points_.size());
  std::iota(active.begin(), active.end(), std::size_t{0});
  for (std::size_t c = 0; c < moves_.size(); ++c) {
    moves_[c].random.shuffle(moves_[c].order);
    moves_[c].next_coordinate = 0;
    begin_coordinate(c);
  }
  while (!active.empty()) {
    if (budget_.reason_to_end(active.size()) != SamplingStatus::complete) return false;
    Matrix<double> u(active.size(), width_.size());
    for (std::size_t i = 0; i < active.size(); ++i) {
      const std::size_t c = active[i];
      std::copy(points_[c].u.begin(), points_[c].u.end(), u.row(i).begin());
      u(i, moves_[c].coordinate()) = moves_[c].trial;
    }
    const TemperedValues values = evaluate_tempered(posterior_, u, budget_);
    std::vector<std::size_t> still;
    for (std::size_t i = 0; i < active.size(); ++i) {
      const std::size_t c = active[i];
      if (advance(c, values.log_prior[i], values.log_ratio[i])) {
        if (++moves_[c].next_coordinate == width_.size()) continue;
        begin_coordinate(c);
      }
      still.push_back(c);
    }
    active = std::move(still);
  }
  return true;
}

bool ChainEnsemble::jump(const ModeJumps& jumps, double exponent) {
  Matrix<double> u(points_.size(), width_.size());
  for (std::size_t attempt = 0; attempt < kJumps; ++attempt) {
    if (budget_.reason_to_end(points_.size()) != SamplingStatus::complete) return false;
    for (std::size_t c = 0; c < points_.size(); ++c)
      jumps.propose(points_[c].u, attempt % 2 == 0, moves_[c].random, u.row(c));
    const TemperedValues values = evaluate_tempered(posterior_, u, budget_);
    for (std::size_t c = 0; c < points_.size(); ++c) {
      const double level = points_[c].log_density(exponent) + std::log(moves_[c].random.uniform());
      if (values.log_ratio[c] == kMinusInfinity ||
          values.log_prior[c] + exponent * values.log_ratio[c] < level)
        continue;
      points_[c] = {{u.row(c).begin(), u.row(c).end()}, values.log_prior[c], values.log_ratio[c]};
      ++jumps_accepted_;
    }
    jumps_tried_ += points_.size();
  }
  return true;
}

void ChainEnsemble::adapt_widths(double share) {
  for (std::size_t d = 0; d < width_.size(); ++d) {
    double mean = 0.0;
    for (const Move& move : moves_) mean += std::log(move.bracket[d]) / static_cast<double>(moves_.size());
    if (std::isfinite(mean)) width_[d] = std::exp(std::log(width_[d]) + share * (mean - std::log(width_[d])));
  }
}

double ChainEnsemble::jump_rate() const {
  return jumps_tried_ ? static_cast<double>(jumps_accepted_) / static_cast<double>(jumps_tried_) : 0.0;
}

}  // namespace nrec
