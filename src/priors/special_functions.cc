#include "priors/special_functions.h"

#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/special_functions/log1p.hpp>
#include <cmath>
#include <numbers>

namespace nrec {

namespace {

namespace policies = boost::math::policies;
// Arguments are checked before they come here, and what overflows may become infinite: Boost never throws.
using Policy = policies::policy<
    policies::domain_error<policies::ignore_error>, policies::pole_error<policies::ignore_error>,
    policies::overflow_error<policies::ignore_error>, policies::underflow_error<policies::ignore_error>,
    policies::denorm_error<policies::ignore_error>, policies::rounding_error<policies::ignore_error>,
    policies::evaluation_error<policies::ignore_error>>;
// Called per number: without the detour over long double.
using FastPolicy = policies::normalise<Policy, policies::promote_double<false>>::type;

}  // namespace

double stirling_error(double a) {
  if (a < 16.0) {
    // In long double, because the terms are up to thirty times the result.
    const long double x = a;
    const long double log_gamma = boost::math::lgamma(x, Policy());
    return static_cast<double>(
        log_gamma - (x * std::log(x) - x - 0.5L * std::log(x / (2.0L * std::numbers::pi_v<long double>))));
  }
  // Stirling's series, Bernoulli numbers B_2k / (2k (2k - 1)); the first term left out is below 1e-17 at a
  // = 16.
  const double r = 1.0 / (a * a);
  return (1.0 / 12 -
          r * (1.0 / 360 -
               r * (1.0 / 1260 - r * (1.0 / 1680 - r * (1.0 / 1188 - r * (691.0 / 360360 - r / 156)))))) /
         a;
}

double log1p_minus_x(double x) {
  // The series is worth its cost only where the two terms cancel.
  return std::fabs(x) < 0.25 ? boost::math::log1pmx(x, FastPolicy()) : std::log1p(x) - x;
}

double log_gamma_half_ratio(double a) { return std::log(boost::math::tgamma_delta_ratio(a, 0.5, Policy())); }

double mills_ratio(double a) {
  // Below 6 erfc and exp are far from their limits; above, 100 terms of Laplace's continued fraction
  // 1 / (a + 1 / (a + 2 / (a + 3 / ...))) are exact to the last bit.
  if (a < 6.0)
    return std::sqrt(std::numbers::pi / 2) * std::erfc(a / std::numbers::sqrt2) * std::exp(0.5 * a * a);
  double tail = a;
  for (int k = 100; k >= 1; --k) tail = a + k / tail;
  return 1.0 / tail;
}

double gaussian_tail_integral(double slope, double width) {
  const double drop = width * (slope + 0.5 * width);
  if (drop < 1.0) {
    // The difference of two Mills ratios would cancel here; the integrand hardly varies.
    return boost::math::quadrature::gauss<double, 30>::integrate(
        [slope](double t) { return std::exp(-t * (slope + 0.5 * t)); }, 0.0, width);
  }
  return drop < 750.0 ? mills_ratio(slope) - std::exp(-drop) * mills_ratio(slope + width)
                      : mills_ratio(slope);
}

}  // namespace nrec
