// The normal distribution and what is made from it: normal, log_normal, half_normal, student_t.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "priors/families.h"
#include "priors/gamma_variate.h"
#include "priors/special_functions.h"

namespace nrec {

namespace {

const double kLogSqrt2Pi = 0.5 * std::log(2.0 * std::numbers::pi);
// What a number > 0 becomes when it underflows: the density at 0 is zero.
constexpr double kSmallest = std::numeric_limits<double>::min();

class Normal final : public ScalarDistribution<Normal> {
 public:
  Normal(double mean, double sd) : mean_(mean), sd_(sd), constant_(-std::log(sd) - kLogSqrt2Pi) {}
  double draw(RandomStream& random) const { return mean_ + sd_ * random.normal(); }
  double log_density(double theta) const {
    const double z = (theta - mean_) / sd_;
    return finite_or_minus_infinity(constant_ - 0.5 * z * z);
  }
  double scaled_score(double theta, double slope) const { return -((theta - mean_) / sd_) * (slope / sd_); }
  std::pair<double, double> support() const { return {-kInfinity, kInfinity}; }

 private:
  double mean_;
  double sd_;
  double constant_;
};

class LogNormal final : public ScalarDistribution<LogNormal> {
 public:
  LogNormal(double location, double scale)
      : location_(location), scale_(scale), constant_(-std::log(scale) - kLogSqrt2Pi) {}
  double draw(RandomStream& random) const {
    return std::max(std::exp(location_ + scale_ * random.normal()), kSmallest);
  }
  double log_density(double theta) const {
    if (!(theta > 0.0)) return -kInfinity;
    const double log_theta = std::log(theta);
    const double z = (log_theta - location_) / scale_;
    return finite_or_minus_infinity(constant_ - 0.5 * z * z - log_theta);
  }
  double scaled_score(double theta, double slope) const {
    const double z = (std::log(theta) - location_) / scale_;
    return -(z / scale_ + 1.0) * (slope / theta);
  }
  std::pair<double, double> support() const { return {0.0, kInfinity}; }

 private:
  double location_;
  double scale_;
  double constant_;
};

class HalfNormal final : public ScalarDistribution<HalfNormal> {
 public:
  explicit HalfNormal(double scale)
      : scale_(scale), constant_(std::numbers::ln2 - std::log(scale) - kLogSqrt2Pi) {}
  double draw(RandomStream& random) const { return scale_ * std::fabs(random.normal()); }
  double log_density(double theta) const {
    const double z = theta / scale_;
    return theta >= 0.0 ? finite_or_minus_infinity(constant_ - 0.5 * z * z) : -kInfinity;
  }
  double scaled_score(double theta, double slope) const { return -(theta / scale_) * (slope / scale_); }
  std::pair<double, double> support() const { return {0.0, kInfinity}; }

 private:
  double scale_;
  double constant_;
};

class StudentT final : public ScalarDistribution<StudentT> {
 public:
  StudentT(double degrees_of_freedom, double location, double scale)
      : v_(degrees_of_freedom),
        location_(location),
        scale_(scale),
        constant_(-log_gamma_half_ratio(0.5 * v_) - 0.5 * (std::log(v_) + std::log(std::numbers::pi)) -
                  std::log(scale)) {}
  double draw(RandomStream& random) const {
    // t = z / sqrt(chi2 / v); in logarithms, because a small v puts real mass where chi2 underflows.
    const double z = random.normal();
    const double log_chi2_over_v = draw_log_gamma(random, 0.5 * v_) - std::log(0.5 * v_);
    return location_ + scale_ * (z * std::exp(-0.5 * log_chi2_over_v));
  }
  double log_density(double theta) const {
    const double z = std::fabs((theta - location_) / scale_);
    // z^2 would overflow above 1e154.
    const double log_factor = z < 1e100 ? std::log1p(z * (z / v_)) : 2.0 * std::log(z) - std::log(v_);
    return finite_or_minus_infinity(constant_ - 0.5 * (v_ + 1.0) * log_factor);
  }
  double scaled_score(double theta, double slope) const {
    const double z = (theta - location_) / scale_;
    // -(v + 1) z / (v + z^2), written so that z^2 cannot overflow
    const double score = std::fabs(z) < 1e100 ? z / (v_ + z * z) : 1.0 / z;
    return -(v_ + 1.0) * score * (slope / scale_);
  }
  std::pair<double, double> support() const { return {-kInfinity, kInfinity}; }

 private:
  double v_;
  double location_;
  double scale_;
  double constant_;
};

}  // namespace

std::unique_ptr<const Distribution> make_normal(const ParameterReader& parameters) {
  return std::make_unique<Normal>(parameters.finite("mean|location"), parameters.positive("sd|scale"));
}

std::unique_ptr<const Distribution> make_log_normal(const ParameterReader& parameters) {
  return std::make_unique<LogNormal>(parameters.finite("location"), parameters.positive("scale"));
}

std::unique_ptr<const Distribution> make_half_normal(const ParameterReader& parameters) {
  return std::make_unique<HalfNormal>(parameters.positive("scale"));
}

std::unique_ptr<const Distribution> make_student_t(const ParameterReader& parameters) {
  return std::make_unique<StudentT>(parameters.positive("degrees_of_freedom"), parameters.finite("location"),
                                    parameters.positive("scale"));
}

}  // namespace nrec
