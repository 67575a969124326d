// Against ArviZ 0.23.4 (arviz.psislw) on weights that any program can regenerate.
#include "inference/pareto_smoothing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "inference/resampling.h"
#include "nrec/core/random.h"

namespace nrec {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

enum class Kind { pareto, narrow, ties };

/// Log weights 0 .. n - 1, in an order that mixes small and large.
std::vector<double> weights(Kind kind, int n, double a, double b) {
  std::vector<double> result;
  for (int i = 0; i < n; ++i) {
    const int place = static_cast<int>(i * 7919LL % n);
    const double q = (place + 0.5) / n;
    switch (kind) {
      case Kind::pareto:  // shape a, shifted by b
        result.push_back(-a * std::log(q) + b);
        break;
      case Kind::narrow:  // a normal of sd a in the unit interval, every b-th weight zero
        result.push_back(-0.5 * std::pow((q - 0.30007) / a, 2));
        if (b > 0 && i % static_cast<int>(b) == 0) result.back() = -kInf;
        break;
      case Kind::ties:  // seven of each
        result.push_back(0.25 * std::sqrt(static_cast<double>(place / 7)));
    }
  }
  return result;
}

std::vector<double> normalised(const std::vector<double>& log_weights, const ParetoSmoothing& smoothing) {
  std::vector<double> result;
  for_each_smoothed(log_weights, smoothing,
                    [&](std::size_t, double value) { result.push_back(value - smoothing.log_sum); });
  return result;
}

TEST(ParetoSmoothing, EqualsArviz) {
  struct Case {
    Kind kind;
    int n;
    double a, b, k_hat, ess, log_sum, sum_of_finite;
    std::vector<std::pair<std::size_t, double>> some;  // row and normalised smoothed log weight
  };
  const Case cases[] = {
      {Kind::pareto,
       100,
       0.2,
       0.0,
       0.31962088433384134,
       94.33224357249432,
       4.828221535070793,
       -462.78301642926135,
       {{0, -3.7685580617611856},
        {79, -3.9282204170433466},
        {16, -4.192651875373158},
        {51, -4.755452848387324},
        {7, -4.609496585639379}}},
      {Kind::pareto,
       1000,
       0.5,
       1000.0,
       0.49708596126244176,
       444.2132857496931,
       1007.5906245470203,
       -7090.9614958710445,
       {{0, -3.7974961336173862},
        {679, -4.344209781912523},
        {271, -6.089080979924668},
        {501, -7.156278670482856},
        {7, -7.172692805639508}}},
      {Kind::pareto,
       5000,
       0.9,
       -1000.0,
       0.8737133169486757,
       58.312647411609134,
       -989.6391875296819,
       -47306.43954106793,
       {{0, -2.193238300708902},
        {2679, -3.1534270573661},
        {2071, -7.662851621716004},
        {2501, -8.13049577136012},
        {7, -8.160041214642138}}},
      {Kind::pareto,
       30,
       0.7,
       3.0,
       0.49472994936186593,
       13.874671346075301,
       7.367931048811323,
       -110.47080815581266,
       {{0, -1.6287481133580286},
        {29, -2.284432875257325},
        {0, -1.6287481133580286},
        {16, -3.8589969362463847},
        {7, -4.196993176452894}}},
      {Kind::pareto,
       10,
       0.7,
       3.0,
       kInf,
       5.902407087930758,
       6.204373643548595,
       -25.283422978062976,
       {{0, -1.1073610520608022},
        {9, -1.8763896541284784},
        {1, -3.16846833747731},
        {6, -2.6454182561961552},
        {7, -2.4694981563995206}}},
      {Kind::narrow,
       1000,
       0.1,
       0,
       -1.543504445255034,
       353.394773079935,
       5.523237540236785,
       -11688.382980585824,
       {{700, -5.523246785236785},
        {21, -5.523246785236785},
        {725, -5.552940609751448},
        {501, -6.236413785236785},
        {7, -6.413415785236785}}},
      {Kind::narrow,
       5000,
       0.01,
       3,
       -0.4395215000090983,
       142.84227729231222,
       4.475885549927967,
       -2078343.4107609931,
       {{3500, -4.475890049927967},
        {821, -4.475890049927967},
        {547, -11.937270049927966},
        {2501, -238.123230049928},
        {7, -232.10967004992796}}},
      {Kind::narrow,
       2000,
       0.0005,
       0,
       182.78550535284822,
       8.000057353568744,
       2.014645126316422,
       -493225819.3693625,
       {{1400, -2.0794451263164317},
        {1721, -2.0794451263164317},
        {1450, -1234.079445126317},
        {1001, -50997.4194451263},
        {7, -347246.4594451263}}},
      {Kind::narrow,
       2000,
       1e-05,
       0,
       kInf,
       1.0,
       -162.00000000002424,
       -1233052850000.0,
       {{1400, 0.0},
        {1721, -349.99999999993395},
        {1450, -3080000.000000001},
        {1001, -127488349.99999997},
        {7, -868110949.9999996}}},
      {Kind::ties,
       500,
       0,
       0,
       -0.7700221868264884,
       419.0467070722479,
       7.72409400491208,
       -3165.2836190697226,
       {{251, -6.499349133520491}, {7, -5.771531585935416}}},
  };
  for (const Case& c : cases) {
    const std::vector<double> raw = weights(c.kind, c.n, c.a, c.b);
    const ParetoSmoothing smoothing = smooth_weights(raw);
    if (std::isinf(c.k_hat)) {
      EXPECT_EQ(smoothing.k_hat, c.k_hat);
    } else {
      EXPECT_NEAR(smoothing.k_hat, c.k_hat, 1e-8 * std::max(1.0, std::fabs(c.k_hat)));
    }
    EXPECT_NEAR(smoothing.ess, c.ess, 1e-8 * c.ess);
    EXPECT_NEAR(smoothing.log_sum, c.log_sum, 1e-8);
    const std::vector<double> log_weight = normalised(raw, smoothing);
    double sum = 0.0;
    for (const double value : log_weight) sum += std::isfinite(value) ? value : 0.0;
    EXPECT_NEAR(sum, c.sum_of_finite, 1e-12 * std::fabs(c.sum_of_finite) + 1e-8);
    for (const auto& [row, value] : c.some)
      EXPECT_NEAR(log_weight[row], value, 1e-8 + 1e-14 * std::fabs(value)) << "row " << row;
  }
}

TEST(ParetoSmoothing, AFlatTailIsReliableAndAShortOneIsNot) {
  const WeightQuality flat = judge_weights(std::vector<double>(1000, 0.7));
  EXPECT_EQ(flat.k_hat, -kInf);
  EXPECT_TRUE(flat.is_reliable());
  EXPECT_NEAR(flat.ess, 1000.0, 1e-9);
  std::vector<double> one(1000, -2000.0);
  one[3] = 0.0;
  const WeightQuality spike = judge_weights(one);
  EXPECT_EQ(spike.k_hat, kInf);
  EXPECT_FALSE(spike.is_reliable());
  const WeightQuality none = judge_weights(std::vector<double>(10, -kInf));
  EXPECT_FALSE(none.is_reliable());
  EXPECT_EQ(none.ess, 0.0);
  EXPECT_EQ(none.log_sum, -kInf);
}

TEST(ParetoSmoothing, TheThresholdDependsOnTheSampleSize) {
  EXPECT_NEAR(k_hat_threshold(100), 0.5, 1e-12);
  EXPECT_NEAR(k_hat_threshold(1000), 2.0 / 3.0, 1e-12);
  EXPECT_EQ(k_hat_threshold(1000000), 0.7);
}

TEST(Resampling, EveryRowComesAsOftenAsItsWeightSays) {
  const std::vector<double> raw = weights(Kind::pareto, 1000, 0.5, 3.0);
  const WeightQuality quality = judge_weights(raw);
  std::vector<double> log_weight = raw;
  for (double& value : log_weight) value -= quality.log_sum;
  const std::size_t n = 400;
  const Resampling resampling(raw, quality, n);
  for (const double uniform : {0.001, 0.5, 0.999}) {
    const std::vector<std::size_t> rows = resampling.draw(n, uniform);
    ASSERT_EQ(rows.size(), n);
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
    std::vector<int> copies(raw.size());
    for (const std::size_t row : rows) ++copies[row];
    for (std::size_t i = 0; i < raw.size(); ++i)
      ASSERT_LT(std::fabs(copies[i] - static_cast<double>(n) * std::exp(log_weight[i])), 1.0) << i;
  }
}

TEST(Resampling, ForecastsWhatItsDrawsAreWorth) {
  const std::vector<double> raw = weights(Kind::pareto, 5000, 0.6, 0.0);
  const WeightQuality quality = judge_weights(raw);
  const std::size_t n = 1000;
  const Resampling resampling(raw, quality, n);
  double squares = 0.0;
  const int repeats = 200;
  for (int i = 0; i < repeats; ++i) {
    const Copies copies = count_copies(resampling.draw(n, (i + 0.5) / repeats));
    squares += static_cast<double>(n * n) / copies.effective_draws / repeats;
    EXPECT_LT(copies.distinct, n);
  }
  EXPECT_NEAR(resampling.effective_draws(n), static_cast<double>(n * n) / squares, 1.0);
  EXPECT_LT(resampling.effective_draws(n), 0.9 * n);
  const std::size_t supported = resampling.supported_draws();
  EXPECT_GE(resampling.effective_draws(supported), 0.9 * static_cast<double>(supported));
  EXPECT_LT(resampling.effective_draws(supported + 1), 0.9 * static_cast<double>(supported + 1));
  const double growth = resampling.growth_needed(1e6);
  EXPECT_NEAR(resampling.effective_draws(n, growth), 0.9 * n, 1e-6 * n);
  EXPECT_EQ(resampling.growth_needed(0.5 * growth), kInf);
}

TEST(Resampling, CountsCopies) {
  const std::vector<std::size_t> rows = {2, 2, 2, 5, 9, 9};
  const Copies copies = count_copies(rows);
  EXPECT_EQ(copies.distinct, 3u);
  EXPECT_NEAR(copies.effective_draws, 36.0 / 14.0, 1e-12);
}

}  // namespace
}  // namespace nrec
