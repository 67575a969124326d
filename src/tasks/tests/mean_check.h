#pragma once

#include <cmath>
#include <cstddef>

namespace nrec {

// Running mean and variance of independent values, to be compared with a known mean in standard errors.
class MeanCheck {
 public:
  void add(double value) {
    ++count_;
    const double step = value - mean_;
    mean_ += step / static_cast<double>(count_);
    sum_of_squares_ += step * (value - mean_);
  }
  double mean() const { return mean_; }
  double variance() const { return sum_of_squares_ / static_cast<double>(count_ - 1); }
  double standard_error() const { return std::sqrt(variance() / static_cast<double>(count_)); }
  // Distance of the mean from `expected` in standard errors.
  double z(double expected) const { return (mean_ - expected) / standard_error(); }

 private:
  std::size_t count_ = 0;
  double mean_ = 0.0;
  double sum_of_squares_ = 0.0;
};

// Two means of independent samples, in standard errors of their difference.
inline double z_difference(const MeanCheck& a, const MeanCheck& b) {
  return (a.mean() - b.mean()) / std::hypot(a.standard_error(), b.standard_error());
}

}  // namespace nrec
