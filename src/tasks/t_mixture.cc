#include "t_mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "core/cholesky.h"
#include "nrec/core/error.h"

namespace nrec::tasks {
namespace {

constexpr int kDegrees = 4;               // a chi-square of four is -2 log(U V)
constexpr int kSteps = 15;                // of expectation maximisation
constexpr double kFloor = 1e-12;          // relative, added to variances so that they are never 0
constexpr double kNegligible = 30.0;      // nats below the largest share of a point
constexpr double kSmallestShare = 1e-12;  // that moves a covariance
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// One normal component during the fit.
struct Normal {
  double weight = 0.0;
  std::vector<double> mean;
  Matrix<double> covariance;
  Matrix<double> factor;
};

// log Gamma(n / 2) for a whole n >= 1, by its recursion.
double log_gamma_half(int n) {
  double sum = n % 2 == 0 ? 0.0 : 0.5 * std::log(std::numbers::pi);
  for (int k = n % 2 == 0 ? 2 : 1; k < n; k += 2) sum += std::log(0.5 * k);
  return sum;
}

double squared_size(const Matrix<double>& factor, const std::vector<double>& mean,
                    std::span<const double> point, std::span<double> scratch) {
  for (std::size_t d = 0; d < point.size(); ++d) scratch[d] = point[d] - mean[d];
  solve_lower(factor, scratch);
  double sum = 0.0;
  for (const double value : scratch) sum += value * value;
  return sum;
}

class Fit {
 public:
  Fit(MatrixView<const double> points, std::size_t count, std::uint64_t seed)
      : points_(points), dim_(points.cols), shares_(points.rows, count) {
    pooled_ = moments([](std::size_t) { return 1.0; }).covariance;
    for (std::size_t d = 0; d < dim_; ++d) pooled_(d, d) += kFloor * (1.0 + pooled_(d, d));
    shrink_ = std::pow(static_cast<double>(count), -2.0 / static_cast<double>(dim_));
    start(count, seed);
    for (int step = 0; step < kSteps; ++step) {
      expect();
      maximise();
    }
  }
  std::vector<Normal> normals;

 private:
  /// Sum of the weights, mean and covariance (lower triangle) of the weighted points.
  template <class Weight>
  Normal moments(const Weight& weight) const {
    Normal n{0.0, std::vector<double>(dim_, 0.0), Matrix<double>(dim_, dim_), {}};
    std::vector<double> deviation(dim_);
    for (std::size_t i = 0; i < points_.rows; ++i) {
      n.weight += weight(i);
      for (std::size_t d = 0; d < dim_; ++d) n.mean[d] += weight(i) * points_(i, d);
    }
    const double total = std::max(n.weight, std::numeric_limits<double>::min());
    for (double& value : n.mean) value /= total;
    for (std::size_t i = 0; i < points_.rows; ++i) {
      if (weight(i) < kSmallestShare) continue;
      for (std::size_t d = 0; d < dim_; ++d) deviation[d] = points_(i, d) - n.mean[d];
      for (std::size_t j = 0; j < dim_; ++j) {
        for (std::size_t k = 0; k <= j; ++k) n.covariance(j, k) += weight(i) * deviation[j] * deviation[k];
      }
    }
    for (double& value : n.covariance.values()) value /= total;
    return n;
  }

  // Centres are points at random, covariances those of all points, made smaller by the number of components.
  void start(std::size_t count, std::uint64_t seed) {
    RandomStream random(seed, Stream::reference);
    for (std::size_t k = 0; k < count; ++k) {
      const auto centre = points_.row(random.integer(points_.rows));
      Normal n{1.0 / static_cast<double>(count), {centre.begin(), centre.end()}, pooled_, {}};
      for (double& value : n.covariance.values()) value *= shrink_;
      normals.push_back(std::move(n));
    }
    factorise();
  }

  void factorise() {
    for (Normal& n : normals) {
      std::optional<Matrix<double>> factor = cholesky_factor(n.covariance);
      require_internal(factor.has_value(), "a component of a mixture has no proper covariance");
      n.factor = std::move(*factor);
    }
  }

  // Shares of every point that the components take.
  void expect() {
    std::vector<double> scratch(dim_), constant;
    for (const Normal& n : normals) constant.push_back(std::log(n.weight) - log_diagonal(n.factor));
    for (std::size_t i = 0; i < points_.rows; ++i) {
      double highest = kMinusInfinity;
      for (std::size_t k = 0; k < normals.size(); ++k) {
        const Normal& n = normals[k];
        shares_(i, k) = constant[k] - 0.5 * squared_size(n.factor, n.mean, points_.row(i), scratch);
        highest = std::max(highest, shares_(i, k));
      }
      double sum = 0.0;
      for (double& share : shares_.row(i)) {
        share = share > highest - kNegligible ? std::exp(share - highest) : 0.0;
        sum += share;
      }
      for (double& share : shares_.row(i)) share /= sum;
    }
  }

  // Every covariance gets a little of the pooled one, shrunk as at the start: as much as a hundredth of a fair share of
  // the points would bring.
  void maximise() {
    const double rows = static_cast<double>(points_.rows);
    const double extra = 0.01 * rows / static_cast<double>(normals.size());
    for (std::size_t k = 0; k < normals.size(); ++k) {
      Normal n = moments([&](std::size_t i) { return shares_(i, k); });
      if (n.weight < 1e-3 * extra) n.mean = normals[k].mean;  // it has lost its points
      for (std::size_t j = 0; j < dim_; ++j) {
        for (std::size_t d = 0; d <= j; ++d) {
          n.covariance(j, d) =
              (n.weight * n.covariance(j, d) + extra * shrink_ * pooled_(j, d)) / (n.weight + extra);
        }
      }
      n.weight = (n.weight + extra) / (1.01 * rows);
      normals[k] = std::move(n);
    }
    factorise();
  }

  MatrixView<const double> points_;
  std::size_t dim_;
  Matrix<double> shares_;  // [n, K]
  Matrix<double> pooled_;
  double shrink_ = 1.0;
};

}  // namespace

TMixture TMixture::fit(MatrixView<const double> points, std::size_t num_components, std::uint64_t seed) {
  Fit fit(points, num_components, seed);
  const auto dim = static_cast<int>(points.cols);
  const double constant = log_gamma_half(kDegrees + dim) - log_gamma_half(kDegrees) -
                          0.5 * dim * std::log(kDegrees * std::numbers::pi);
  TMixture mixture;
  for (Normal& n : fit.normals) {
    const double log_constant = constant + std::log(n.weight) - log_diagonal(n.factor);
    mixture.components_.push_back({n.weight, log_constant, std::move(n.mean), std::move(n.factor)});
  }
  return mixture;
}

void TMixture::draw(RandomStream& random, std::span<double> point) const {
  double u = random.uniform();
  std::size_t k = 0;
  while (k + 1 < components_.size() && u > components_[k].weight) u -= components_[k++].weight;
  const Component& component = components_[k];
  const double chi_square = -2.0 * (std::log(random.uniform()) + std::log(random.uniform()));
  const double stretch = std::sqrt(static_cast<double>(kDegrees) / chi_square);
  for (double& value : point) value = random.normal();
  for (std::size_t i = point.size(); i-- > 0;) {
    double sum = 0.0;
    for (std::size_t j = 0; j <= i; ++j) sum += component.factor(i, j) * point[j];
    point[i] = component.mean[i] + stretch * sum;
  }
}

double TMixture::log_density(std::span<const double> point, std::span<double> scratch) const {
  const double power = 0.5 * static_cast<double>(kDegrees + point.size());
  double highest = kMinusInfinity, sum = 0.0;
  for (const Component& c : components_) {
    const double square = squared_size(c.factor, c.mean, point, scratch);
    const double term = c.log_constant - power * std::log1p(square / kDegrees);
    // A running log-sum-exp: the scale is that of the largest term so far.
    if (term > highest) {
      sum = sum * std::exp(highest - term) + 1.0;
      highest = term;
    } else {
      sum += std::exp(term - highest);
    }
  }
  return highest + std::log(sum);
}

}  // namespace nrec::tasks
