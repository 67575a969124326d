#include "inference/nuts_warmup.h"

#include <algorithm>
#include <cmath>

namespace nrec {

namespace {

// [Hoffman2014, sec. 3.2.1]
constexpr double kShrinkage = 0.05;
constexpr double kEarlyIterations = 10.0;
constexpr double kDecay = 0.75;
// [Stan]: variances of few draws are drawn towards a guess.
constexpr double kGuessWeight = 5.0;

}  // namespace

void DualAveraging::restart(double step_size) {
  first_ = step_size;
  mu_ = std::log(10.0 * step_size);
  error_ = log_average_ = 0.0;
  count_ = 0;
}

double DualAveraging::next(double acceptance_rate) {
  const double t = static_cast<double>(++count_);
  const double weight = 1.0 / (t + kEarlyIterations);
  error_ = (1.0 - weight) * error_ + weight * (target_ - acceptance_rate);
  const double x = mu_ - error_ * std::sqrt(t) / kShrinkage;
  const double share = std::pow(t, -kDecay);
  log_average_ = (1.0 - share) * log_average_ + share * x;
  return std::exp(x);
}

double DualAveraging::averaged() const { return count_ ? std::exp(log_average_) : first_; }

WarmupSchedule::WarmupSchedule(std::size_t length)
    : length_(length), first_(length * 3 / 10), last_(length - length / 5) {
  std::size_t start = first_;
  for (std::size_t size = std::max<std::size_t>(1, length / 10); start < last_; size *= 2) {
    // What would be left for the next window must be at least twice this one.
    start = start + 3 * size > last_ ? last_ : start + size;
    ends_.push_back(start);
  }
}

bool WarmupSchedule::is_in_window(std::size_t iteration) const {
  return iteration >= first_ && iteration < last_;
}

bool WarmupSchedule::ends_window(std::size_t iteration) const {
  return std::find(ends_.begin(), ends_.end(), iteration + 1) != ends_.end();
}

PooledVariance::PooledVariance(std::size_t num_chains, std::size_t dim)
    : dim_(dim), counts_(num_chains), means_(num_chains, std::vector<double>(dim)), squares_(dim) {}

void PooledVariance::add(std::size_t chain, std::span<const double> u) {
  const double n = static_cast<double>(++counts_[chain]);
  for (std::size_t d = 0; d < dim_; ++d) {
    const double distance = u[d] - means_[chain][d];
    means_[chain][d] += distance / n;
    squares_[d] += distance * (u[d] - means_[chain][d]);
  }
}

std::vector<double> PooledVariance::take(std::span<const double> guess) {
  double freedom = 0.0;
  for (const std::size_t count : counts_) freedom += static_cast<double>(count) - (count > 0 ? 1.0 : 0.0);
  std::vector<double> variance(dim_);
  for (std::size_t d = 0; d < dim_; ++d) {
    const double log_seen = std::log(squares_[d] / freedom);
    const double log_guess = std::log(guess[d]);
    // In logarithms, because a guess may be wrong by many powers of ten.
    variance[d] = std::isfinite(log_seen)
                      ? std::exp((freedom * log_seen + kGuessWeight * log_guess) / (freedom + kGuessWeight))
                      : guess[d];
  }
  *this = PooledVariance(counts_.size(), dim_);
  return variance;
}

}  // namespace nrec
