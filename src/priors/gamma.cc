// Families of waiting times: exponential and gamma.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "nrec/core/options.h"
#include "priors/families.h"
#include "priors/gamma_variate.h"
#include "priors/special_functions.h"

namespace nrec {

namespace {

class Exponential final : public ScalarDistribution<Exponential> {
 public:
  explicit Exponential(double rate) : rate_(rate), log_rate_(std::log(rate)) {}
  double draw(RandomStream& random) const { return -std::log(random.uniform()) / rate_; }
  double log_density(double theta) const {
    return theta >= 0.0 ? finite_or_minus_infinity(log_rate_ - rate_ * theta) : -kInfinity;
  }
  double scaled_score(double, double slope) const { return -rate_ * slope; }
  std::pair<double, double> support() const { return {0.0, kInfinity}; }

 private:
  double rate_;
  double log_rate_;
};

// Written around the mean, so that a large shape does not cancel: with y = rate theta / shape,
//   log density = shape (log y - (y - 1)) - log y + constant
class Gamma final : public ScalarDistribution<Gamma> {
 public:
  Gamma(double shape, double rate)
      : shape_(shape),
        mean_(shape / rate),
        log_rate_(std::log(rate)),
        constant_(std::log(rate) - 0.5 * (std::log(shape) + std::log(2.0 * std::numbers::pi)) -
                  stirling_error(shape)) {}

  double draw(RandomStream& random) const {
    // A small shape underflows to 0, where the density is not finite.
    return std::max(std::exp(draw_log_gamma(random, shape_) - log_rate_), std::numeric_limits<double>::min());
  }

  double log_density(double theta) const {
    if (!(theta >= 0.0)) return -kInfinity;
    if (theta == 0.0) return shape_ == 1.0 ? log_rate_ : -kInfinity;
    const double x = (theta - mean_) / mean_;
    if (std::fabs(x) < 0.25) return shape_ * log1p_minus_x(x) - std::log1p(x) + constant_;
    return finite_or_minus_infinity((shape_ - 1.0) * std::log(theta / mean_) - shape_ * x + constant_);
  }

  double scaled_score(double theta, double slope) const {
    const double from_power = shape_ == 1.0 ? 0.0 : (shape_ - 1.0) * (slope / theta);
    return from_power - shape_ * (slope / mean_);
  }

  std::pair<double, double> support() const { return {0.0, kInfinity}; }

 private:
  double shape_;
  double mean_;
  double log_rate_;
  double constant_;
};

}  // namespace

std::unique_ptr<const Distribution> make_exponential(const ParameterReader& parameters) {
  return std::make_unique<Exponential>(parameters.positive("rate"));
}

std::unique_ptr<const Distribution> make_gamma(const ParameterReader& parameters) {
  const double shape = parameters.positive("shape");
  const double rate = parameters.positive("rate");
  if (!std::isnormal(shape / rate)) {
    parameters.fail_domain("the mean shape / rate = " + number_text(shape) + " / " + number_text(rate) +
                           " is outside the range of double; choose other units.");
  }
  return std::make_unique<Gamma>(shape, rate);
}

}  // namespace nrec
