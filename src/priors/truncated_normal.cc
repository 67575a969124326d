// truncated_normal: the normal restricted to [low, high], right however far the interval lies in a tail.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "nrec/core/options.h"
#include "priors/families.h"
#include "priors/special_functions.h"

namespace nrec {

namespace {

const double kLogSqrt2Pi = 0.5 * std::log(2.0 * std::numbers::pi);
// Beyond this many sd the numbers of the density (distance times sd) leave the range of double.
constexpr double kLargestDistance = 1e100;

// The interval holds the mean: offsets are measured from the mean.
class CentralTruncatedNormal final : public ScalarDistribution<CentralTruncatedNormal> {
 public:
  CentralTruncatedNormal(double mean, double sd, double low, double high)
      : mean_(mean), sd_(sd), low_(low), high_(high), a_((low - mean) / sd), b_((high - mean) / sd) {
    // Both terms of the mass are >= 0: nothing cancels.
    const double mass = 0.5 * (std::erf(b_ / std::numbers::sqrt2) + std::erf(-a_ / std::numbers::sqrt2));
    constant_ = -std::log(sd) - kLogSqrt2Pi - std::log(mass);
  }

  double draw(RandomStream& random) const {
    // At least 0.49 of the proposals are accepted, either way.
    const bool wide = b_ - a_ > std::sqrt(2.0 * std::numbers::pi);
    for (;;) {
      if (wide) {
        const double theta = mean_ + sd_ * random.normal();
        if (theta >= low_ && theta <= high_) return theta;
      } else {
        const double theta = std::min(random.uniform(low_, high_), high_);
        const double z = (theta - mean_) / sd_;
        if (random.uniform() <= std::exp(-0.5 * z * z)) return theta;
      }
    }
  }

  double log_density(double theta) const {
    if (!(theta >= low_ && theta <= high_)) return -kInfinity;
    const double z = (theta - mean_) / sd_;
    return finite_or_minus_infinity(constant_ - 0.5 * z * z);
  }

  double scaled_score(double theta, double slope) const { return -((theta - mean_) / sd_) * (slope / sd_); }

  std::pair<double, double> support() const { return {low_, high_}; }

 private:
  double mean_;
  double sd_;
  double low_;
  double high_;
  double a_;
  double b_;
  double constant_;
};

// The mean is outside: offsets t >= 0 in sd are measured from the bound next to it, which is `slope` sd from
// the mean.
//   density of t = exp(-(slope t + t^2 / 2)) / integral over [0, width]
class TailTruncatedNormal final : public ScalarDistribution<TailTruncatedNormal> {
 public:
  TailTruncatedNormal(double sd, double low, double high, double slope, bool is_upper_tail)
      : sd_(is_upper_tail ? sd : -sd),
        anchor_(is_upper_tail ? low : high),
        low_(low),
        high_(high),
        slope_(slope),
        width_((high - low) / sd),
        rate_(0.5 * (slope + std::hypot(slope, 2.0))),
        mode_(std::min(2.0 / (slope + std::hypot(slope, 2.0)), width_)),
        proposal_mass_(-std::expm1(-rate_ * width_)),
        constant_(-std::log(sd) - std::log(gaussian_tail_integral(slope, width_))) {}

  // Rejection from the truncated exponential of the best rate (slope + sqrt(slope^2 + 4)) / 2; the ratio of
  // the densities is largest at rate - slope, or at the far bound if that comes first. At least 0.76 of the
  // proposals are accepted. Source   [Robert1995], with the far bound in the proposal
  double draw(RandomStream& random) const {
    const double excess = rate_minus_slope();
    for (;;) {
      const double t = std::min(-std::log1p(-random.uniform() * proposal_mass_) / rate_, width_);
      const double log_accept = 0.5 * ((mode_ - excess) * (mode_ - excess) - (t - excess) * (t - excess));
      if (std::log(random.uniform()) <= log_accept) return std::clamp(anchor_ + sd_ * t, low_, high_);
    }
  }

  double log_density(double theta) const {
    if (!(theta >= low_ && theta <= high_)) return -kInfinity;
    const double t = (theta - anchor_) / sd_;
    return finite_or_minus_infinity(constant_ - t * (slope_ + 0.5 * t));
  }

  double scaled_score(double theta, double slope) const {
    const double t = (theta - anchor_) / sd_;
    return -(slope_ + t) * (slope / sd_);
  }

  std::pair<double, double> support() const { return {low_, high_}; }

 private:
  // (sqrt(slope^2 + 4) - slope) / 2 without cancellation
  double rate_minus_slope() const { return 1.0 / rate_; }

  double sd_;  // negative in the lower tail: theta = anchor + sd t
  double anchor_;
  double low_;
  double high_;
  double slope_;
  double width_;
  double rate_;
  double mode_;
  double proposal_mass_;
  double constant_;
};

}  // namespace

std::unique_ptr<const Distribution> make_truncated_normal(const ParameterReader& parameters) {
  const double mean = parameters.finite("mean|location");
  const double sd = parameters.positive("sd|scale");
  const double low = parameters.bound_or("low", -kInfinity);
  const double high = parameters.bound_or("high", kInfinity);
  parameters.check_order(low, high);
  if (low <= mean && mean <= high) return std::make_unique<CentralTruncatedNormal>(mean, sd, low, high);
  const bool is_upper_tail = low > mean;
  const double near = is_upper_tail ? low : high;
  const double slope = std::fabs(near - mean) / sd;
  if (!(slope < kLargestDistance)) {
    parameters.fail_domain((is_upper_tail ? "low = " : "high = ") + number_text(near) +
                           " is more than 1e100 sd from mean = " + number_text(mean) +
                           "; choose a larger sd or a nearer bound.");
  }
  return std::make_unique<TailTruncatedNormal>(sd, low, high, slope, is_upper_tail);
}

}  // namespace nrec
