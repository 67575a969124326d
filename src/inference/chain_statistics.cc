#include "inference/chain_statistics.h"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "core/sorted_quantile.h"

namespace nrec {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kLeastDraws = 4;

/// First and last half of every chain; the middle draw of an odd length is left out.
Chains split(const Chains& chains) {
  Chains halves;
  for (const std::vector<double>& chain : chains) {
    const auto half = static_cast<std::ptrdiff_t>(chain.size() / 2);
    halves.emplace_back(chain.begin(), chain.begin() + half);
    halves.emplace_back(chain.end() - half, chain.end());
  }
  return halves;
}

std::vector<double> pooled(const Chains& chains) {
  std::vector<double> all;
  for (const std::vector<double>& chain : chains) all.insert(all.end(), chain.begin(), chain.end());
  return all;
}

/// Normal scores of the average ranks: Phi^-1((rank - 3/8) / (S + 1/4)).
Chains normal_scores(const Chains& chains) {
  const std::vector<double> all = pooled(chains);
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return all[a] < all[b]; });
  std::vector<double> score(all.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && all[order[last + 1]] == all[order[first]]) ++last;
    const double rank = 0.5 * static_cast<double>(first + last) + 1.0;
    const double p = (rank - 0.375) / (static_cast<double>(all.size()) + 0.25);
    for (std::size_t i = first; i <= last; ++i)
      score[order[i]] = -std::sqrt(2.0) * boost::math::erfc_inv(2.0 * p);
    first = last + 1;
  }
  Chains result = chains;
  std::size_t next = 0;
  for (std::vector<double>& chain : result) {
    for (double& value : chain) value = score[next++];
  }
  return result;
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double variance_of(std::span<const double> values) {  // n - 1
  const double mean = mean_of(values);
  double sum = 0.0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size() - 1);
}

bool too_short(const Chains& chains) { return chains.empty() || chains.front().size() < kLeastDraws; }

double r_hat(const Chains& chains) {
  const double n = static_cast<double>(chains.front().size());
  std::vector<double> means, variances;
  for (const std::vector<double>& chain : chains) {
    means.push_back(mean_of(chain));
    variances.push_back(variance_of(chain));
  }
  const double within = mean_of(variances);
  const double between = n * variance_of(means);
  return std::sqrt((between / within + n - 1) / n);
}

/// Autocovariance of the chains at one lag, divided by the number of draws, averaged over chains.
class Autocovariance {
 public:
  explicit Autocovariance(const Chains& chains) : centred_(chains) {
    for (std::vector<double>& chain : centred_) {
      means_.push_back(mean_of(chain));
      for (double& value : chain) value -= means_.back();
    }
  }
  const std::vector<double>& means() const { return means_; }

  double at(std::size_t lag) const {
    double result = 0.0;
    for (const std::vector<double>& chain : centred_) {
      double sum = 0.0;
      for (std::size_t i = 0; i + lag < chain.size(); ++i) sum += chain[i] * chain[i + lag];
      result += sum / static_cast<double>(chain.size()) / static_cast<double>(centred_.size());
    }
    return result;
  }

 private:
  Chains centred_;
  std::vector<double> means_;
};

/// Effective sample size with Geyer's initial monotone sequence. Lags are computed until that ends: all of them would
/// cost the square of the number of draws.
double ess(const Chains& chains) {
  const std::size_t m = chains.size();
  const std::size_t n = chains.front().size();
  const double draws = static_cast<double>(n);
  const Autocovariance autocovariance(chains);
  const double mean_variance = autocovariance.at(0) * draws / (draws - 1);
  double variance_plus = mean_variance * (draws - 1) / draws;
  if (m > 1) variance_plus += variance_of(autocovariance.means());
  const double total = static_cast<double>(m) * draws;
  if (!(variance_plus > 0)) return total;  // all values equal
  const auto correlation = [&](std::size_t lag) {
    return 1.0 - (mean_variance - autocovariance.at(lag)) / variance_plus;
  };
  std::vector<double> rho(n, 0.0);
  double even = 1.0, odd = correlation(1);
  rho[0] = even;
  rho[1] = odd;
  std::size_t t = 1;
  while (t + 3 < n && even + odd > 0) {
    even = correlation(t + 1);
    odd = correlation(t + 2);
    if (even + odd >= 0) {
      rho[t + 1] = even;
      rho[t + 2] = odd;
    }
    t += 2;
  }
  const auto last = static_cast<std::ptrdiff_t>(t) - 2;
  if (even > 0) rho[static_cast<std::size_t>(last + 1)] = even;
  for (std::ptrdiff_t i = 1; i <= last - 2; i += 2) {
    const auto k = static_cast<std::size_t>(i);
    if (rho[k + 1] + rho[k + 2] > rho[k - 1] + rho[k]) rho[k + 1] = rho[k + 2] = 0.5 * (rho[k - 1] + rho[k]);
  }
  double tau = -1.0 + rho[static_cast<std::size_t>(last + 1)];
  for (std::ptrdiff_t i = 0; i <= last; ++i) tau += 2.0 * rho[static_cast<std::size_t>(i)];
  return total / std::max(tau, 1.0 / std::log10(total));
}

std::vector<double> sorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}

/// ESS of the indicator "at most the q quantile".
double quantile_ess(const Chains& halves, double threshold) {
  Chains indicator = halves;
  for (std::vector<double>& chain : indicator) {
    for (double& value : chain) value = value <= threshold ? 1.0 : 0.0;
  }
  return ess(indicator);
}

/// (value - mean over all draws)^2.
Chains squared_distances(const Chains& chains) {
  const double mean = mean_of(pooled(chains));
  Chains squares = chains;
  for (std::vector<double>& chain : squares) {
    for (double& value : chain) value = (value - mean) * (value - mean);
  }
  return squares;
}

// Normal probabilities of -1 and 1 sd, with the digits that ArviZ uses.
constexpr double kMinusOneSd = 0.1586553;
constexpr double kPlusOneSd = 0.8413447;

}  // namespace

double split_r_hat(const Chains& chains) {
  if (too_short(chains)) return kNan;
  const Chains halves = split(chains);
  Chains folded = halves;
  const double median = sorted_quantile(sorted(pooled(halves)), 0.5);
  for (std::vector<double>& chain : folded) {
    for (double& value : chain) value = std::fabs(value - median);
  }
  return std::max(r_hat(normal_scores(halves)), r_hat(normal_scores(folded)));
}

double bulk_ess(const Chains& chains) { return too_short(chains) ? kNan : ess(normal_scores(split(chains))); }

double tail_ess(const Chains& chains) {
  if (too_short(chains)) return kNan;
  const Chains halves = split(chains);
  const std::vector<double> all = sorted(pooled(chains));
  return std::min(quantile_ess(halves, sorted_quantile(all, 0.05)),
                  quantile_ess(halves, sorted_quantile(all, 0.95)));
}

double mcse_mean(const Chains& chains) {
  if (too_short(chains)) return kNan;
  return std::sqrt(variance_of(pooled(chains)) / ess(split(chains)));
}

double mcse_sd(const Chains& chains) {
  if (too_short(chains)) return kNan;
  const Chains squares = squared_distances(chains);
  std::vector<double> values = pooled(squares);
  const double m2 = mean_of(values);
  for (double& value : values) value *= value;
  return std::sqrt((mean_of(values) - m2 * m2) / ess(split(squares)) / m2 / 4.0);
}

double mcse_quantile(const Chains& chains, double q) {
  if (too_short(chains)) return kNan;
  const std::vector<double> all = sorted(pooled(chains));
  const double effective = quantile_ess(split(chains), sorted_quantile(all, q));
  const double n = static_cast<double>(all.size());
  const auto place = [&](double p) {
    return boost::math::ibeta_inv(effective * q + 1.0, effective * (1.0 - q) + 1.0, p) * n - 1.0;
  };
  const double below = std::floor(std::max(place(kMinusOneSd), 0.0));
  const double above = std::ceil(std::min(place(kPlusOneSd), n - 1.0));
  return (all[static_cast<std::size_t>(above)] - all[static_cast<std::size_t>(below)]) / 2.0;
}

}  // namespace nrec
