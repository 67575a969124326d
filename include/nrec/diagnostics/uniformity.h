#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace nrec {

/// P(sup |F_n - F| > statistic) for n values: Kolmogorov's series with Stephens' small-sample correction.
///
/// Units    statistic in [0, 1]; returns a probability
/// Source   [Stephens1970]
double kolmogorov_p_value(double statistic, double n);

/// P(X > statistic) for X chi-squared distributed: the upper regularised incomplete gamma function Q(degrees/2, statistic/2).
///
/// Units    statistic >= 0, degrees > 0; returns a probability
/// Numerics relative error below 1e-10 down to 1e-300
double chi_squared_p_value(double statistic, double degrees);

/// P(|Z| > |z|) for a standard normal Z; nan stays nan.
double normal_p_value(double z);
/// The z with P(Z <= z) = p; infinite at 0 and 1.
///
/// Units    p in [0, 1]
/// Numerics absolute error below 1e-12
double normal_quantile(double p);

/// Smallest and largest share of successes of n trials that is not in one of the tails of probability (1 - level)/2 each.
///
/// Units    p and level in [0, 1]; n >= 1
/// Cost     O(n)
std::pair<double, double> binomial_interval(std::size_t n, double p, double level);

/// What ranks that should be uniform in (0, 1) say.
struct UniformityTest {
  std::size_t num_ranks = 0;
  double mean = 0.5;          // above 1/2: what was ranked lies above the draws
  double mean_p_value = 1.0;  // of (mean - 1/2) sqrt(12 n), normal
  double spread = 1.0;        // 12 mean (u - 1/2)^2: above 1 for draws that are too narrow
  double spread_p_value = 1.0;
  std::vector<double> counts;  // per bin of equal width
  double chi_squared = 0.0;
  double chi_squared_p_value = 1.0;
  double ks = 0.0;  // largest distance of the empirical distribution from the diagonal
  double ks_p_value = 1.0;

  /// Distance of truth and posterior mean in posterior sds that would give this mean if both were normal: > 0 where the posterior
  /// lies too low. sqrt(2) times the normal quantile of the mean.
  double shift() const;
  /// sd of the posterior over the right one that would give this spread if both were normal and not shifted; in [0, inf].
  ///
  ///   E (Phi(k z) - 1/2)^2 = asin(k^2/(1 + k^2)) / (2 pi),   width = 1/k
  double width() const;
};

/// Tests of n ranks against the uniform law: mean, spread, chi-squared over min(20, n/10) bins (at least 2), Kolmogorov-Smirnov.
///
/// Shapes   ranks [n], n >= 1
/// Errors   ShapeError: no ranks; DomainError: a rank outside [0, 1], or nan
/// Source   [Talts2018], [Stephens1970]
UniformityTest test_uniformity(std::span<const double> ranks);

/// A band that the empirical distribution of n uniform numbers leaves nowhere with a given probability.
struct EcdfBand {
  std::vector<double> levels;     // where
  std::vector<double> low, high;  // of the empirical distribution, in [0, 1]
};

/// Simultaneous band at `levels`: binomial intervals of one pointwise level, which is found by simulating 2,000 sets of n uniform
/// numbers.
///
/// Shapes   levels [G], ascending in (0, 1)
/// Units    level: probability that the band holds everything, in (0, 1)
/// Errors   DomainError: n = 0, or a level outside (0, 1)
/// Numerics a pure function of its arguments
/// Cost     O(2000 (n + G) + n G)
/// Source   [Saeilynoja2022, sec. 2]
EcdfBand ecdf_band(std::size_t n, std::span<const double> levels, double level, std::uint64_t seed);

/// Share of ranks that are at most each of `levels`: the empirical distribution. Shapes   returns [G]
std::vector<double> ecdf(std::span<const double> ranks, std::span<const double> levels);

/// p-values corrected for their number by Holm's method: all true hypotheses together give one below `a` with probability at most a.
///
/// Shapes   p_values [m]; nan counts as not tested. Returns [m], nan where it was nan
/// Source   [Holm1979]
std::vector<double> holm_adjusted(std::span<const double> p_values);

}  // namespace nrec
