#include "priors/tests/prior_cases.h"

#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/exponential.hpp>
#include <boost/math/distributions/gamma.hpp>
#include <boost/math/distributions/lognormal.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/distributions/uniform.hpp>
#include <cmath>
#include <limits>

namespace nrec {

namespace {

namespace bm = boost::math;
using Real = long double;
constexpr double kInf = std::numeric_limits<double>::infinity();

// theta = location + scale y, with y from a Boost distribution of long double.
template <class D>
PriorCase boost_case(std::string label, PriorTerm prior_term, D d, Real location = 0, Real scale = 1,
                     double tolerance = 1e-9) {
  PriorCase c{std::move(label), std::move(prior_term)};
  c.pdf = [=](Real x) { return bm::pdf(d, (x - location) / scale) / scale; };
  c.cdf = [=](Real x) { return bm::cdf(d, (x - location) / scale); };
  c.quantile = [=](Real p) { return location + scale * bm::quantile(d, p); };
  c.mean = static_cast<double>(location + scale * bm::mean(d));
  c.sd = static_cast<double>(scale * bm::standard_deviation(d));
  c.integral_tolerance = tolerance;
  return c;
}

// A standard normal cut to [a, b], at mean + sd z; all from upper tails when it lies above 0, so that nothing
// cancels.
PriorCase truncated_case(std::string label, double mean, double sd, double low, double high) {
  const bm::normal_distribution<Real> n(0, 1);
  const Real a = (static_cast<Real>(low) - mean) / sd;
  const Real b = (static_cast<Real>(high) - mean) / sd;
  const Real side = b <= 0 || (a < 0 && std::fabs(a) > std::fabs(b))
                        ? -1
                        : 1;  // mirrored so that the mass is in an upper tail
  const auto upper = [n](Real z) -> Real {
    return z == INFINITY ? 0 : z == -INFINITY ? 1 : bm::cdf(bm::complement(n, z));
  };
  const auto density = [n](Real z) -> Real { return std::isinf(z) ? 0 : bm::pdf(n, z); };
  const Real first = side > 0 ? a : -b;
  const Real last = side > 0 ? b : -a;
  const Real mass = upper(first) - upper(last);
  const auto z_density = [=](Real z) { return z == INFINITY || z == -INFINITY ? 0 : z * density(z); };
  PriorCase c{std::move(label),
              term("truncated_normal", {{"mean", {mean}}, {"sd", {sd}}, {"low", {low}}, {"high", {high}}})};
  const auto standard = [=](Real x) { return side * (x - mean) / sd; };
  c.pdf = [=](Real x) { return density(standard(x)) / (mass * sd); };
  c.cdf = [=](Real x) {
    const Real below = (upper(first) - upper(standard(x))) / mass;
    return side > 0 ? below : 1 - below;
  };
  c.quantile = [=](Real p) {
    const Real q = upper(first) - (side > 0 ? p : 1 - p) * mass;
    return mean + sd * side * bm::quantile(bm::complement(n, q));
  };
  const Real z_mean = (density(first) - density(last)) / mass;
  const Real z_variance = 1 + (z_density(first) - z_density(last)) / mass - z_mean * z_mean;
  c.mean = static_cast<double>(mean + sd * side * z_mean);
  c.sd = static_cast<double>(sd * std::sqrt(z_variance));
  return c;
}

PriorCase half_normal_case(double scale) {
  const bm::normal_distribution<Real> n(0, scale);
  PriorCase c{"half_normal", term("half_normal", {{"scale", {scale}}})};
  c.pdf = [=](Real x) { return 2 * bm::pdf(n, x); };
  c.cdf = [=](Real x) { return 2 * bm::cdf(n, x) - 1; };
  c.quantile = [=](Real p) { return bm::quantile(n, 0.5L + p / 2); };
  c.mean = scale * std::sqrt(2 / M_PI);
  c.sd = scale * std::sqrt(1 - 2 / M_PI);
  return c;
}

PriorCase heavy(PriorCase c) {
  c.has_moments = false;
  return c;
}

PriorCase walled(PriorCase c) {
  c.label += "_identity";
  c.term.transform = "identity";
  return c;
}

PriorCase student_case(std::string label, double v, double location, double scale) {
  const bm::students_t_distribution<Real> d(v);
  PriorCase c{std::move(label),
              term("student_t", {{"degrees_of_freedom", {v}}, {"location", {location}}, {"scale", {scale}}})};
  c.pdf = [=](Real x) { return bm::pdf(d, (x - location) / scale) / scale; };
  c.cdf = [=](Real x) { return bm::cdf(d, (x - location) / scale); };
  c.quantile = [=](Real p) { return location + scale * bm::quantile(d, p); };
  c.mean = location;
  c.sd = scale * std::sqrt(v / (v - 2));
  return c;
}

}  // namespace

const std::vector<PriorCase>& prior_cases() {
  static const std::vector<PriorCase> cases = {
      boost_case("uniform", term("uniform", {{"low", {-3}}, {"high", {5}}}),
                 bm::uniform_distribution<Real>(-3, 5)),
      boost_case("uniform_far", term("uniform", {{"low", {2460000.5}}, {"high", {2460000.625}}}),
                 bm::uniform_distribution<Real>(2460000.5L, 2460000.625L)),
      walled(boost_case("uniform", term("uniform", {{"low", {-1}}, {"high", {1}}}),
                        bm::uniform_distribution<Real>(-1, 1))),
      boost_case("normal", term("normal", {{"mean", {1.5}}, {"sd", {0.25}}}),
                 bm::normal_distribution<Real>(1.5L, 0.25L)),
      boost_case("log_normal", term("log_normal", {{"location", {-0.125}}, {"scale", {0.5}}}),
                 bm::lognormal_distribution<Real>(-0.125L, 0.5L)),
      half_normal_case(2.5),
      boost_case("exponential", term("exponential", {{"rate", {0.25}}}),
                 bm::exponential_distribution<Real>(0.25L)),
      boost_case("gamma", term("gamma", {{"shape", {2.5}}, {"rate", {0.5}}}),
                 bm::gamma_distribution<Real>(2.5L, 2)),
      boost_case("gamma_small", term("gamma", {{"shape", {0.25}}, {"rate", {4}}}),
                 bm::gamma_distribution<Real>(0.25L, 0.25L)),
      boost_case("gamma_one", term("gamma", {{"shape", {1}}, {"rate", {2}}}),
                 bm::gamma_distribution<Real>(1, 0.5L)),
      boost_case("gamma_large", term("gamma", {{"shape", {40000}}, {"rate", {8}}}),
                 bm::gamma_distribution<Real>(40000, 0.125L)),
      boost_case("beta", term("beta", {{"alpha", {2.5}}, {"beta", {1.5}}}),
                 bm::beta_distribution<Real>(2.5L, 1.5L)),
      boost_case("beta_scaled", term("beta", {{"alpha", {4}}, {"beta", {2}}, {"low", {-10}}, {"high", {30}}}),
                 bm::beta_distribution<Real>(4, 2), -10, 40),
      boost_case("beta_u_shaped", term("beta", {{"alpha", {0.5}}, {"beta", {0.5}}}),
                 bm::beta_distribution<Real>(0.5L, 0.5L), 0, 1, 1e-7),
      boost_case("beta_large", term("beta", {{"alpha", {30000}}, {"beta", {10000}}}),
                 bm::beta_distribution<Real>(30000, 10000)),
      student_case("student_t", 7, -2, 3),
      heavy(student_case("cauchy", 1, 0.5, 0.125)),
      student_case("student_t_near_normal", 1e6, 1, 2),
      truncated_case("truncated_two_sided", 1, 2, -1.5, 4),
      truncated_case("truncated_narrow", 0, 1, -0.5, 0.75),
      truncated_case("truncated_above", -1, 2, 0, kInf),
      truncated_case("truncated_below", -1, 2, -kInf, 0.5),
      truncated_case("truncated_neither", -1, 2, -kInf, kInf),
      truncated_case("truncated_tail_8", 0, 1, 8, kInf),
      truncated_case("truncated_tail_30", 0, 1, 30, kInf),
      truncated_case("truncated_lower_tail_8", 0, 1, -kInf, -8),
      truncated_case("truncated_tail_sliver", 0, 1, 3, 3.0625),
      truncated_case("truncated_tail_window", 10, 2, 14, 18),
  };
  return cases;
}

}  // namespace nrec
