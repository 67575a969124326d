// Families whose support is a bounded interval: uniform and beta.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "priors/families.h"
#include "priors/gamma_variate.h"
#include "priors/special_functions.h"

namespace nrec {

namespace {

class Uniform final : public ScalarDistribution<Uniform> {
 public:
  Uniform(double low, double high) : low_(low), high_(high), log_density_(-std::log(high - low)) {}
  double draw(RandomStream& random) const { return random.uniform(low_, high_); }
  double log_density(double theta) const {
    return theta >= low_ && theta <= high_ ? log_density_ : -kInfinity;
  }
  double scaled_score(double, double) const { return 0.0; }
  std::pair<double, double> support() const { return {low_, high_}; }

 private:
  double low_;
  double high_;
  double log_density_;
};

// Written around its centre p = alpha / (alpha + beta), q = 1 - p, so that large alpha and beta do not
// cancel:
//   log density = alpha l(t / p) + beta l((1 - t) / q) - log t - log(1 - t) + constant,  l(y) = log y - (y -
//   1)
// (the linear parts add up to zero).
class Beta final : public ScalarDistribution<Beta> {
 public:
  Beta(double alpha, double beta, double low, double high)
      : alpha_(alpha),
        beta_(beta),
        low_(low),
        high_(high),
        p_(alpha / (alpha + beta)),
        q_(beta / (alpha + beta)) {
    const double sum = alpha + beta;
    constant_ = 0.5 * (std::log(alpha) + std::log(q_) - std::log(2.0 * std::numbers::pi)) -
                stirling_error(alpha) - stirling_error(beta) + stirling_error(sum) - std::log(high - low);
  }

  double draw(RandomStream& random) const {
    const double log_odds = draw_log_gamma(random, alpha_) - draw_log_gamma(random, beta_);
    const double e = std::exp(-std::fabs(log_odds));
    const double step = (high_ - low_) * (e / (1.0 + e));
    const double theta = log_odds < 0.0 ? low_ + step : high_ - step;
    // Rounding may reach a bound, where the density can be zero: the nearest double inside.
    return std::clamp(theta, std::nextafter(low_, high_), std::nextafter(high_, low_));
  }

  double log_density(double theta) const {
    if (!(theta >= low_ && theta <= high_)) return -kInfinity;
    const double width = high_ - low_;
    const double t = (theta - low_) / width;
    const double s = (high_ - theta) / width;
    if (t == 0.0) return alpha_ == 1.0 ? std::log(beta_) - std::log(width) : -kInfinity;
    if (s == 0.0) return beta_ == 1.0 ? std::log(alpha_) - std::log(width) : -kInfinity;
    return finite_or_minus_infinity(power_part(t, p_, alpha_) + power_part(s, q_, beta_) + constant_);
  }

  double scaled_score(double theta, double slope) const {
    // A power of one has no part, also on the bound, where its distance is 0.
    const double from_low = alpha_ == 1.0 ? 0.0 : (alpha_ - 1.0) * (slope / (theta - low_));
    const double from_high = beta_ == 1.0 ? 0.0 : (beta_ - 1.0) * (slope / (high_ - theta));
    return from_low - from_high;
  }

  std::pair<double, double> support() const { return {low_, high_}; }

 private:
  // power * l(t / centre) - log t
  static double power_part(double t, double centre, double power) {
    const double x = (t - centre) / centre;
    if (std::fabs(x) < 0.25) return power * log1p_minus_x(x) - std::log(t);
    return (power - 1.0) * std::log(t) - power * (std::log(centre) + x);
  }

  double alpha_;
  double beta_;
  double low_;
  double high_;
  double p_;
  double q_;
  double constant_;
};

}  // namespace

std::unique_ptr<const Distribution> make_uniform(const ParameterReader& parameters) {
  const double low = parameters.finite("low");
  const double high = parameters.finite("high");
  parameters.check_order(low, high);
  return std::make_unique<Uniform>(low, high);
}

std::unique_ptr<const Distribution> make_beta(const ParameterReader& parameters) {
  const double alpha = parameters.positive("alpha");
  const double beta = parameters.positive("beta");
  const double low = parameters.finite_or("low", 0.0);
  const double high = parameters.finite_or("high", 1.0);
  parameters.check_order(low, high);
  return std::make_unique<Beta>(alpha, beta, low, high);
}

}  // namespace nrec
