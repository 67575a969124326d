#include "diagnostics/calibration_tests.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/sorted_quantile.h"
#include "nrec/diagnostics/uniformity.h"

namespace nrec {

namespace {

constexpr std::size_t kLevels = 39;  // 0.025, 0.05 .. 0.975
constexpr double kBand = 0.95;       // of all bands
constexpr std::size_t kBootstraps = 500;
constexpr double kLargeShift = 0.25;      // posterior sds
constexpr double kLargeWidth = 0.15;      // of the width relative to the right one
constexpr double kLargeDeviation = 0.12;  // of a distribution function: by itself a C2ST of 0.56

std::vector<double> curve_levels() {
  std::vector<double> levels;
  for (std::size_t g = 1; g <= kLevels; ++g) levels.push_back(static_cast<double>(g) / (kLevels + 1.0));
  return levels;
}

/// Columns of numbers about every parameter, for the record.
struct ParameterColumns {
  std::vector<double> mean, mean_p, shift, spread, spread_p, width, chi_squared, chi_squared_p, ks, ks_p,
      counts;
  std::vector<double> ecdf, central;

  void add(const UniformityTest& test) {
    mean.push_back(test.mean);
    mean_p.push_back(test.mean_p_value);
    shift.push_back(test.shift());
    spread.push_back(test.spread);
    spread_p.push_back(test.spread_p_value);
    width.push_back(test.width());
    chi_squared.push_back(test.chi_squared);
    chi_squared_p.push_back(test.chi_squared_p_value);
    ks.push_back(test.ks);
    ks_p.push_back(test.ks_p_value);
    counts.insert(counts.end(), test.counts.begin(), test.counts.end());
  }

  void write(Record& record) const {
    record.set("ranks.mean", RecordValue(mean));
    record.set("ranks.mean_p_value", RecordValue(mean_p));
    record.set("ranks.shift", RecordValue(shift));
    record.set("ranks.spread", RecordValue(spread));
    record.set("ranks.spread_p_value", RecordValue(spread_p));
    record.set("ranks.width", RecordValue(width));
    record.set("ranks.chi_squared", RecordValue(chi_squared));
    record.set("ranks.chi_squared_p_value", RecordValue(chi_squared_p));
    record.set("ranks.ks", RecordValue(ks));
    record.set("ranks.ks_p_value", RecordValue(ks_p));
    record.set("ranks.counts", RecordValue(counts));
    record.set("ranks.ecdf", RecordValue(ecdf));
    record.set("coverage.central", RecordValue(central));
  }
};

std::string width_text(const std::string& of, double width) {
  return of + check_text(width < 1.0 ? " %.0f %% too narrow" : " %.0f %% too wide",
                         100.0 * std::fabs(width - 1.0));
}

void add_parameter_tests(const std::string& name, const UniformityTest& test, std::vector<CheckTest>& tests) {
  const double shift = test.shift(), width = test.width();
  tests.push_back({"ranks", "mean rank of " + name, test.mean_p_value, std::fabs(shift) > kLargeShift, true,
                   "the posterior of " + name + " lies too " + (shift > 0 ? "low" : "high") +
                       check_text(" by %.2f of its sds (mean rank %.3f)", std::fabs(shift), test.mean),
                   advice::kShifted});
  tests.push_back(
      {"ranks", "spread of ranks of " + name, test.spread_p_value, std::fabs(width - 1.0) > kLargeWidth, true,
       width_text("the posterior of " + name + " is", width), width < 1.0 ? advice::kNarrow : advice::kWide});
  const bool is_large = test.ks > kLargeDeviation;
  const std::string effect = "ranks of " + name + check_text(" are not uniform (off by up to %.3f)", test.ks);
  tests.push_back({"ranks", "Kolmogorov-Smirnov of " + name, test.ks_p_value, is_large, true, effect,
                   advice::kShape, true});
  tests.push_back({"ranks", "chi-squared of " + name, test.chi_squared_p_value, is_large, true, effect,
                   advice::kShape, true});
}

void test_parameters(const HeldOutRatios& held_out, std::span<const std::string> names,
                     std::span<const double> levels, CheckFindings& findings) {
  ParameterColumns columns;
  for (std::size_t j = 0; j < names.size(); ++j) {
    std::vector<double> ranks = held_out.parameter_ranks(j);
    const UniformityTest test = test_uniformity(ranks);
    columns.add(test);
    add_parameter_tests(names[j], test, findings.tests);
    const std::vector<double> distribution = ecdf(ranks, levels);
    columns.ecdf.insert(columns.ecdf.end(), distribution.begin(), distribution.end());
    for (double& u : ranks) u = std::fabs(2.0 * u - 1.0);  // mass of the smallest central interval around it
    const std::vector<double> covered = ecdf(ranks, levels);
    columns.central.insert(columns.central.end(), covered.begin(), covered.end());
  }
  columns.write(findings.record);
}

void write_bands(std::size_t n, std::span<const double> levels, std::uint64_t seed, Record& record) {
  std::vector<double> low, high;
  for (const double level : levels) {
    const auto [from, to] = binomial_interval(n, level, kBand);
    low.push_back(from);
    high.push_back(to);
  }
  const EcdfBand band = ecdf_band(n, levels, kBand, seed);
  record.set("coverage.band_low", RecordValue(low));
  record.set("coverage.band_high", RecordValue(high));
  record.set("ranks.ecdf_band_low", RecordValue(band.low));
  record.set("ranks.ecdf_band_high", RecordValue(band.high));
}

/// The level at which coverage is farthest from it, in words.
std::string coverage_text(std::span<const double> levels, std::span<const double> covered) {
  std::size_t worst = 0;
  for (std::size_t g = 0; g < levels.size(); ++g) {
    if (std::fabs(covered[g] - levels[g]) > std::fabs(covered[worst] - levels[worst])) worst = g;
  }
  return check_text("%.3g %% highest-density regions hold %.1f %% of the true thetas", 100.0 * levels[worst],
                    100.0 * covered[worst]);
}

void test_coverage(const HeldOutRatios& held_out, std::span<const double> levels, CheckFindings& findings) {
  const std::vector<double> ranks = held_out.density_ranks(), covered = ecdf(ranks, levels);
  const UniformityTest test = test_uniformity(ranks);
  const bool is_narrow = test.mean > 0.5;  // truths at lower density than draws
  findings.record.set("coverage.highest_density", RecordValue(covered));
  findings.record.set("coverage.ks", test.ks);
  findings.record.set("coverage.p_value", test.ks_p_value);
  findings.tests.push_back(
      {"coverage", "highest-density regions", test.ks_p_value, test.ks > kLargeDeviation, true,
       coverage_text(levels, covered) +
           (is_narrow ? ": posteriors are too narrow, or off" : ": posteriors are too wide"),
       is_narrow ? advice::kNarrow : advice::kWide});
}

/// Percentile band of the distribution function of resampled ranks.
void write_bootstrap(std::span<const double> ranks, std::span<const double> levels, std::uint64_t seed,
                     Record& record) {
  std::vector<std::vector<double>> curves(levels.size());
  std::vector<double> again(ranks.size());
  for (std::size_t b = 0; b < kBootstraps; ++b) {
    RandomStream random(seed, Stream::resampling, b);
    for (double& u : again) u = ranks[random.integer(ranks.size())];
    const std::vector<double> curve = ecdf(again, levels);
    for (std::size_t g = 0; g < curve.size(); ++g) curves[g].push_back(curve[g]);
  }
  std::vector<double> low, high;
  for (std::vector<double>& curve : curves) {
    std::sort(curve.begin(), curve.end());
    low.push_back(sorted_quantile(curve, 0.5 * (1.0 - kBand)));
    high.push_back(sorted_quantile(curve, 0.5 * (1.0 + kBand)));
  }
  record.set("tarp.band_low", RecordValue(low));
  record.set("tarp.band_high", RecordValue(high));
}

/// Posteriors that lie off in one direction have truths nearer to references there: ranks go with the direction.
///
///   z_j = sum_i (u_i - 1/2) v_ij / sqrt(sum_i v_ij^2 / 12),   the smallest of D p-values, corrected
///
/// Given its set of points u is uniform whatever the direction v, so that z is standard normal for an exact posterior.
struct DirectionTest {
  double p_value = 1.0;
  double shift = 0.0;  // in posterior sds: a displacement d moves the mean rank by d / (2 sqrt pi) along d
};

DirectionTest test_directions(const HeldOutRatios& held_out) {
  DirectionTest test;
  std::vector<double> smallest;
  double square = 0.0;
  const std::size_t dim = held_out.ranks[0].direction.size();
  for (std::size_t j = 0; j < dim; ++j) {
    double sum = 0.0, weight = 0.0;
    for (const PosteriorRanks& ranks : held_out.ranks) {
      sum += (ranks.distance - 0.5) * ranks.direction[j];
      weight += ranks.direction[j] * ranks.direction[j];
    }
    if (!(weight > 0.0)) continue;
    smallest.push_back(normal_p_value(sum / std::sqrt(weight / 12.0)));
    const double displacement = sum / weight * 2.0 * std::sqrt(std::numbers::pi);
    square += displacement * displacement;
  }
  for (const double p : holm_adjusted(smallest)) test.p_value = std::min(test.p_value, p);
  test.shift = std::sqrt(square);
  return test;
}

void test_tarp(const HeldOutRatios& held_out, std::span<const double> levels, CheckFindings& findings) {
  const std::vector<double> ranks = held_out.distance_ranks();
  const UniformityTest test = test_uniformity(ranks);
  findings.record.set("tarp.coverage", RecordValue(ecdf(ranks, levels)));
  findings.record.set("tarp.ks", test.ks);
  findings.record.set("tarp.p_value", test.ks_p_value);
  findings.tests.push_back(
      {"tarp", "distances from random references", test.ks_p_value, test.ks > kLargeDeviation, true,
       check_text("coverage of balls around random references is off by up to %.3f", test.ks),
       advice::kShape});
  const DirectionTest directed = test_directions(held_out);
  findings.record.set("tarp.direction_p_value", directed.p_value);
  findings.record.set("tarp.shift", directed.shift);
  findings.tests.push_back(
      {"tarp", "directions to random references", directed.p_value, directed.shift > kLargeShift, true,
       check_text("posteriors lie off by %.2f of their sds, seen from random references", directed.shift),
       advice::kShifted});
}

}  // namespace

void test_calibration(const HeldOutRatios& held_out, std::span<const std::string> names,
                      CheckFindings& findings) {
  const std::vector<double> levels = curve_levels();
  findings.record.set("levels", RecordValue(levels));
  findings.record.set("parameters", RecordValue(std::vector<std::string>(names.begin(), names.end())));
  test_parameters(held_out, names, levels, findings);
  test_coverage(held_out, levels, findings);
  test_tarp(held_out, levels, findings);
}

void record_bands(const HeldOutRatios& held_out, std::uint64_t seed, Record& record) {
  const std::vector<double> levels = curve_levels();
  write_bands(held_out.num_rows(), levels, seed, record);
  write_bootstrap(held_out.distance_ranks(), levels, seed, record);
}

}  // namespace nrec
