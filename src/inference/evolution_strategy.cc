#include "inference/evolution_strategy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "core/cholesky.h"

namespace nrec {

namespace {

constexpr double kFirstSigma = 0.3;   // of the given covariance
constexpr double kSteady = 1e-6;      // values that differ by less are equal: single precision of a network
constexpr std::size_t kPatience = 5;  // steady periods without a better value
constexpr double kMostSigmaGrowth = 1.0;  // of log sigma in one generation

double norm(std::span<const double> values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

/// Mean length of a standard normal vector.
double mean_norm(double n) { return std::sqrt(n) * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n)); }

}  // namespace

EvolutionStrategy::EvolutionStrategy(std::span<const double> start, Matrix<double> covariance,
                                     RandomStream random)
    : dim_(start.size()),
      random_(random),
      mean_(start.begin(), start.end()),
      covariance_(std::move(covariance)),
      factor_(dim_, dim_),
      sigma_(kFirstSigma),
      path_sigma_(dim_),
      path_(dim_),
      best_point_(mean_),
      best_value_(-std::numeric_limits<double>::infinity()) {
  set_strategy();
  if (factorise()) return;
  for (std::size_t i = 0; i < dim_; ++i) {
    for (std::size_t j = 0; j < dim_; ++j) {
      if (i != j) covariance_(i, j) = 0.0;
    }
    if (!(covariance_(i, i) > 0)) covariance_(i, i) = 1.0;
  }
  factorise();
}

/// Constants of [Hansen2016, table 1].
void EvolutionStrategy::set_strategy() {
  const double n = static_cast<double>(dim_);
  const auto points = static_cast<std::size_t>(4.0 + std::floor(3.0 * std::log(n)));
  z_ = Matrix<double>(points, dim_);
  step_ = Matrix<double>(points, dim_);
  double sum = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < points / 2; ++i) {
    weights_.push_back(std::log(0.5 * (static_cast<double>(points) + 1.0)) -
                       std::log(static_cast<double>(i) + 1.0));
    sum += weights_.back();
  }
  for (double& weight : weights_) {
    weight /= sum;
    squares += weight * weight;
  }
  mass_ = 1.0 / squares;
  rate_sigma_ = (mass_ + 2.0) / (n + mass_ + 5.0);
  damping_ = 1.0 + 2.0 * std::max(0.0, std::sqrt((mass_ - 1.0) / (n + 1.0)) - 1.0) + rate_sigma_;
  rate_path_ = (4.0 + mass_ / n) / (n + 4.0 + 2.0 * mass_ / n);
  rate_one_ = 2.0 / ((n + 1.3) * (n + 1.3) + mass_);
  rate_many_ = std::min(1.0 - rate_one_, 2.0 * (mass_ - 2.0 + 1.0 / mass_) / ((n + 2.0) * (n + 2.0) + mass_));
}

/// A from C; false when C is not positive definite.
bool EvolutionStrategy::factorise() {
  std::optional<Matrix<double>> factor = cholesky_factor(covariance_);
  if (!factor) return false;
  factor_ = std::move(*factor);
  return true;
}

void EvolutionStrategy::ask(MatrixView<double> points) {
  for (std::size_t i = 0; i < z_.rows(); ++i) {
    for (double& value : z_.row(i)) value = random_.normal();
    for (std::size_t d = 0; d < dim_; ++d) {
      step_(i, d) =
          std::inner_product(z_.row(i).begin(), z_.row(i).begin() + static_cast<std::ptrdiff_t>(d) + 1,
                             factor_.row(d).begin(), 0.0);
      points(i, d) = mean_[d] + sigma_ * step_(i, d);
    }
  }
}

void EvolutionStrategy::tell(MatrixView<const double> points, std::span<const double> value) {
  std::vector<std::size_t> order(value.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rank = [&](std::size_t i) {  // nan would break the order
    return std::isnan(value[i]) ? -std::numeric_limits<double>::infinity() : value[i];
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return rank(a) > rank(b); });
  if (rank(order[0]) > best_value_) {
    best_value_ = rank(order[0]);
    std::ranges::copy(points.row(order[0]), best_point_.begin());
  }
  move_mean(order);
  adapt_covariance(order);
  ++generation_;
  look_at(rank(order[0]));
}

/// The mean goes to the better half; sigma grows while it keeps its direction.
void EvolutionStrategy::move_mean(std::span<const std::size_t> order) {
  const double n = static_cast<double>(dim_);
  const double keep_sigma = std::sqrt(rate_sigma_ * (2.0 - rate_sigma_) * mass_);
  std::vector<double> step(dim_);
  for (std::size_t d = 0; d < dim_; ++d) {
    double step_z = 0.0;
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      step_z += weights_[k] * z_(order[k], d);
      step[d] += weights_[k] * step_(order[k], d);
    }
    mean_[d] += sigma_ * step[d];
    path_sigma_[d] = (1.0 - rate_sigma_) * path_sigma_[d] + keep_sigma * step_z;
  }
  const double length = norm(path_sigma_);
  const double start =
      std::sqrt(1.0 - std::pow(1.0 - rate_sigma_, 2.0 * static_cast<double>(generation_ + 1)));
  path_is_short_ = length / start < (1.4 + 2.0 / (n + 1.0)) * mean_norm(n);
  const double keep = path_is_short_ ? std::sqrt(rate_path_ * (2.0 - rate_path_) * mass_) : 0.0;
  for (std::size_t d = 0; d < dim_; ++d) path_[d] = (1.0 - rate_path_) * path_[d] + keep * step[d];
  sigma_ *= std::exp(std::min(kMostSigmaGrowth, rate_sigma_ / damping_ * (length / mean_norm(n) - 1.0)));
}

/// C goes to the covariance of the better half's steps and of the path of the mean.
void EvolutionStrategy::adapt_covariance(std::span<const std::size_t> order) {
  const double lost = path_is_short_ ? 0.0 : rate_one_ * rate_path_ * (2.0 - rate_path_);
  for (std::size_t i = 0; i < dim_; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double many = 0.0;
      for (std::size_t k = 0; k < weights_.size(); ++k)
        many += weights_[k] * step_(order[k], i) * step_(order[k], j);
      covariance_(i, j) = (1.0 - rate_one_ - rate_many_ + lost) * covariance_(i, j) +
                          rate_one_ * path_[i] * path_[j] + rate_many_ * many;
      covariance_(j, i) = covariance_(i, j);
    }
  }
  if (!factorise()) has_converged_ = true;  // flat to rounding: nothing is left to gain
}

void EvolutionStrategy::look_at(double best_of_generation) {
  generation_best_.push_back(best_of_generation);
  best_so_far_.push_back(best_value_);
  const std::size_t steady = 10 + (30 * dim_ + z_.rows() - 1) / z_.rows();
  if (generation_ > steady) {
    const auto [low, high] = std::minmax_element(generation_best_.end() - static_cast<std::ptrdiff_t>(steady),
                                                 generation_best_.end());
    // Not greater also when there is no finite value at all: their difference is nan.
    if (!(*high - *low > kSteady)) has_converged_ = true;
  }
  const std::size_t patience = kPatience * steady;
  if (generation_ > patience && !(best_value_ - best_so_far_[generation_ - 1 - patience] > kSteady))
    has_converged_ = true;
}

}  // namespace nrec
