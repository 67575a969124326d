#include "nrec/diagnostics/uniformity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>

#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/core/random.h"

namespace nrec {

namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kTiny = std::numeric_limits<double>::min();
constexpr std::size_t kMostBins = 20;
constexpr std::size_t kRanksPerBin = 10;  // fewer, and chi-squared is not what its p-value supposes
constexpr std::size_t kBandSimulations = 2000;

/// exp(-x) x^a / Gamma(a)
double gamma_front(double a, double x) { return std::exp(-x + a * std::log(x) - std::lgamma(a)); }

/// Lower incomplete gamma function by its series, good for x < a + 1.
double gamma_series(double a, double x) {
  double term = 1.0 / a;
  double sum = term;
  for (double n = a + 1.0; term > sum * kEpsilon; n += 1.0) {
    term *= x / n;
    sum += term;
  }
  return sum * gamma_front(a, x);
}

/// Upper one by Lentz's continued fraction, good for x >= a + 1.
double gamma_fraction(double a, double x) {
  double b = x + 1.0 - a;
  double c = 1.0 / kTiny;
  double d = 1.0 / b;
  double h = d;
  for (int i = 1; i < 10000; ++i) {
    const double an = -i * (i - a);
    b += 2.0;
    d = an * d + b;
    if (std::fabs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::fabs(c) < kTiny) c = kTiny;
    d = 1.0 / d;
    const double step = d * c;
    h *= step;
    if (std::fabs(step - 1.0) < 4.0 * kEpsilon) break;
  }
  return h * gamma_front(a, x);
}

/// P(X <= k) for k = 0 .. n, X ~ Binomial(n, p).
std::vector<double> binomial_distribution(std::size_t n, double p) {
  std::vector<double> below(n + 1, 1.0);
  if (p <= 0.0) return below;
  if (p >= 1.0) {
    std::fill(below.begin(), below.end() - 1, 0.0);
    return below;
  }
  const double log_odds = std::log(p) - std::log1p(-p);
  double log_choose = static_cast<double>(n) * std::log1p(-p);
  double sum = 0.0;
  for (std::size_t k = 0; k <= n; ++k) {
    sum += std::exp(log_choose);
    below[k] = std::min(sum, 1.0);
    log_choose += log_odds + std::log(static_cast<double>(n - k)) - std::log(static_cast<double>(k + 1));
  }
  return below;
}

/// The shares k/n that stay in when both tails of at most `tail` are cut off.
std::pair<double, double> central_shares(const std::vector<double>& below, double tail) {
  const double n = static_cast<double>(below.size() - 1);
  const auto low = std::upper_bound(below.begin(), below.end(), tail);
  const auto high = std::lower_bound(below.begin(), below.end(), 1.0 - tail);
  return {static_cast<double>(low - below.begin()) / n,
          static_cast<double>(std::min(high, below.end() - 1) - below.begin()) / n};
}

}  // namespace

double kolmogorov_p_value(double statistic, double n) {
  const double root = std::sqrt(n);
  const double lambda = (root + 0.12 + 0.11 / root) * statistic;
  if (lambda < 0.2) return 1.0;
  double sum = 0.0;
  for (int k = 1; k <= 100; ++k) sum += (k % 2 ? 2.0 : -2.0) * std::exp(-2.0 * k * k * lambda * lambda);
  return std::clamp(sum, 0.0, 1.0);
}

double chi_squared_p_value(double statistic, double degrees) {
  const double a = 0.5 * degrees;
  const double x = 0.5 * statistic;
  if (x <= 0.0) return 1.0;
  return std::clamp(x < a + 1.0 ? 1.0 - gamma_series(a, x) : gamma_fraction(a, x), 0.0, 1.0);
}

double normal_p_value(double z) { return std::erfc(std::fabs(z) / std::numbers::sqrt2); }

// Bisection down to neighbouring doubles: called a few times a check, so that speed does not matter.
double normal_quantile(double p) {
  if (p <= 0.0) return -std::numeric_limits<double>::infinity();
  if (p >= 1.0) return std::numeric_limits<double>::infinity();
  if (p > 0.5) return -normal_quantile(1.0 - p);
  double low = -40.0, high = 0.0;
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

std::pair<double, double> binomial_interval(std::size_t n, double p, double level) {
  return central_shares(binomial_distribution(n, p), 0.5 * (1.0 - level));
}

double UniformityTest::shift() const { return std::numbers::sqrt2 * normal_quantile(mean); }

double UniformityTest::width() const {
  const double s = std::sin(std::clamp(spread * std::numbers::pi / 6.0, 0.0, std::numbers::pi / 2.0));
  return std::sqrt((1.0 - s) / s);  // s = k^2 / (1 + k^2)
}

namespace {

void require_ranks(std::span<const double> ranks) {
  if (ranks.empty()) throw ShapeError("test_uniformity: there are no ranks; give at least one");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] >= 0.0 && ranks[i] <= 1.0) continue;
    throw DomainError("test_uniformity: ranks[" + std::to_string(i) + "] = " + number_text(ranks[i]) +
                      " must be in [0, 1]");
  }
}

void test_bins(std::span<const double> ranks, UniformityTest& test) {
  const std::size_t bins = std::clamp<std::size_t>(ranks.size() / kRanksPerBin, 2, kMostBins);
  test.counts.assign(bins, 0.0);
  for (const double u : ranks)
    ++test.counts[std::min(bins - 1, static_cast<std::size_t>(u * static_cast<double>(bins)))];
  const double expected = static_cast<double>(ranks.size()) / static_cast<double>(bins);
  for (const double count : test.counts)
    test.chi_squared += (count - expected) * (count - expected) / expected;
  test.chi_squared_p_value = chi_squared_p_value(test.chi_squared, static_cast<double>(bins - 1));
}

}  // namespace

UniformityTest test_uniformity(std::span<const double> ranks) {
  require_ranks(ranks);
  UniformityTest test;
  const double n = static_cast<double>(ranks.size());
  std::vector<double> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  test.num_ranks = ranks.size();
  test.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
  test.mean_p_value = normal_p_value((test.mean - 0.5) * std::sqrt(12.0 * n));
  double square = 0.0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    square += (sorted[i] - 0.5) * (sorted[i] - 0.5) / n;
    test.ks = std::max(
        {test.ks, static_cast<double>(i + 1) / n - sorted[i], sorted[i] - static_cast<double>(i) / n});
  }
  test.spread = 12.0 * square;
  test.spread_p_value = normal_p_value((square - 1.0 / 12.0) * std::sqrt(180.0 * n));
  test.ks_p_value = kolmogorov_p_value(test.ks, n);
  test_bins(ranks, test);
  return test;
}

namespace {

/// Twice the smaller tail of k successes.
double two_sided(const std::vector<double>& below, std::size_t k) {
  return 2.0 * std::min(below[k], k == 0 ? 1.0 : 1.0 - below[k - 1]);
}

/// Numbers of n uniform values at most each level.
std::vector<std::size_t> counts_below(std::span<const double> values, std::span<const double> levels) {
  std::vector<std::size_t> counts(levels.size(), 0);
  for (const double u : values) {
    const auto bin =
        static_cast<std::size_t>(std::lower_bound(levels.begin(), levels.end(), u) - levels.begin());
    if (bin < counts.size()) ++counts[bin];
  }
  std::partial_sum(counts.begin(), counts.end(), counts.begin());
  return counts;
}

}  // namespace

EcdfBand ecdf_band(std::size_t n, std::span<const double> levels, double level, std::uint64_t seed) {
  if (n == 0) throw DomainError("ecdf_band: n = 0 must be at least 1");
  if (!(level > 0.0 && level < 1.0))
    throw DomainError("ecdf_band: level = " + number_text(level) + " must be in (0, 1)");
  std::vector<std::vector<double>> below;
  for (const double p : levels) {
    if (!(p > 0.0 && p < 1.0))
      throw DomainError("ecdf_band: levels hold " + number_text(p) + "; they must be in (0, 1)");
    below.push_back(binomial_distribution(n, p));
  }
  std::vector<double> smallest(kBandSimulations, 1.0), values(n);
  for (std::size_t s = 0; s < kBandSimulations; ++s) {
    RandomStream random(seed, Stream::check, s);
    for (double& u : values) u = random.uniform();
    const std::vector<std::size_t> counts = counts_below(values, levels);
    for (std::size_t g = 0; g < levels.size(); ++g)
      smallest[s] = std::min(smallest[s], two_sided(below[g], counts[g]));
  }
  const auto cut = static_cast<std::ptrdiff_t>((1.0 - level) * static_cast<double>(kBandSimulations));
  std::nth_element(smallest.begin(), smallest.begin() + cut, smallest.end());
  const double tail = 0.5 * smallest[static_cast<std::size_t>(cut)];
  EcdfBand band{{levels.begin(), levels.end()}, {}, {}};
  for (std::size_t g = 0; g < levels.size(); ++g) {
    // A hair below the tail: what is as rare as the rarest allowed is inside.
    const auto [low, high] = central_shares(below[g], tail * (1.0 - 1e-9));
    band.low.push_back(low);
    band.high.push_back(high);
  }
  return band;
}

std::vector<double> ecdf(std::span<const double> ranks, std::span<const double> levels) {
  std::vector<double> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> shares;
  for (const double level : levels) {
    const auto count = std::upper_bound(sorted.begin(), sorted.end(), level) - sorted.begin();
    shares.push_back(static_cast<double>(count) / static_cast<double>(sorted.size()));
  }
  return shares;
}

std::vector<double> holm_adjusted(std::span<const double> p_values) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p_values.size(); ++i) {
    if (!std::isnan(p_values[i])) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size(), std::numeric_limits<double>::quiet_NaN());
  double largest = 0.0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    largest = std::max(largest, std::min(1.0, static_cast<double>(order.size() - k) * p_values[order[k]]));
    adjusted[order[k]] = largest;
  }
  return adjusted;
}

}  // namespace nrec
