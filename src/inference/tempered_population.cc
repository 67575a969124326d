#include "inference/tempered_population.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/sorted_quantile.h"
#include "inference/prior_candidates.h"
#include "inference/resampling.h"
#include "nrec/core/random.h"

namespace nrec {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr std::size_t kCandidates = 100000;
constexpr std::size_t kPopulation = 1000;
constexpr double kKept = 0.5;  // of the population's worth, from one exponent to the next
constexpr std::size_t kSweepsPerStage = 2;
constexpr double kLeastGrowth = 1.1;               // of the exponent, where one point has all the weight
constexpr double kBisected = 1e-3;                 // relative precision of exponents
constexpr double kNormalIqr = 1.3489795003921634;  // interquartile range of a standard normal
constexpr std::uint64_t kFirstRow = std::uint64_t{1}
                                    << 63;  // of the population's random numbers: chains use the others

/// Weights exp(exponent log_weight) relative to the largest.
std::vector<double> weights_at(std::span<const double> log_weight, double exponent) {
  const double top = *std::max_element(log_weight.begin(), log_weight.end());
  std::vector<double> weight(log_weight.size());
  for (std::size_t i = 0; i < weight.size(); ++i)
    weight[i] = log_weight[i] == kMinusInfinity ? 0.0 : std::exp(exponent * (log_weight[i] - top));
  return weight;
}

std::vector<double> log_ratios_of(const std::vector<TemperedPoint>& points) {
  std::vector<double> log_ratio;
  for (const TemperedPoint& point : points) log_ratio.push_back(point.log_ratio);
  return log_ratio;
}

/// Half the interquartile range or so of every coordinate: slice sampling corrects it.
std::vector<double> spread_of(const std::vector<TemperedPoint>& points) {
  std::vector<double> spread, column(points.size());
  for (std::size_t d = 0; d < points.front().u.size(); ++d) {
    for (std::size_t i = 0; i < points.size(); ++i) column[i] = points[i].u[d];
    std::sort(column.begin(), column.end());
    const double sd = (sorted_quantile(column, 0.75) - sorted_quantile(column, 0.25)) / kNormalIqr;
    spread.push_back(sd > 0.0 && std::isfinite(sd) ? sd : 1.0);
  }
  return spread;
}

Matrix<double> rows_of(const std::vector<TemperedPoint>& points) {
  Matrix<double> rows(points.size(), points.front().u.size());
  for (std::size_t i = 0; i < points.size(); ++i)
    std::copy(points[i].u.begin(), points[i].u.end(), rows.row(i).begin());
  return rows;
}

std::vector<TemperedPoint> resampled(const std::vector<TemperedPoint>& points, double step, double uniform) {
  std::vector<TemperedPoint> result;
  for (const std::size_t row :
       systematic_rows(weights_at(log_ratios_of(points), step), points.size(), uniform))
    result.push_back(points[row]);
  return result;
}

/// The points of `candidates` in `rows`, in unbounded space; those that lose their density on the way there are left out.
std::vector<TemperedPoint> points_at(const Posterior& posterior, const Matrix<double>& candidates,
                                     const std::vector<std::size_t>& rows, SamplingBudget& budget) {
  Matrix<double> u(rows.size(), candidates.cols());
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy(candidates.row(rows[i]).begin(), candidates.row(rows[i]).end(), u.row(i).begin());
  posterior.unbounded_prior().to_unbounded(u, u);
  const TemperedValues values = evaluate_tempered(posterior, u, budget);
  std::vector<TemperedPoint> points;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (values.log_ratio[i] != kMinusInfinity)
      points.push_back({{u.row(i).begin(), u.row(i).end()}, values.log_prior[i], values.log_ratio[i]});
  }
  return points;
}

}  // namespace

double effective_number(std::span<const double> log_weight, double exponent) {
  const double top = *std::max_element(log_weight.begin(), log_weight.end());
  if (top == kMinusInfinity) return 0.0;
  double sum = 0.0, square = 0.0;
  for (const double value : log_weight) {
    constexpr double kNegligible = -40.0;
    const double log_w = exponent * (value - top);
    if (!(log_w > kNegligible)) continue;
    const double w = std::exp(log_w);
    sum += w;
    square += w * w;
  }
  return sum * sum / square;
}

double largest_exponent(std::span<const double> log_weight, double wanted, double most) {
  if (effective_number(log_weight, most) >= wanted) return most;
  double yes = most, no = most;
  while (effective_number(log_weight, yes) < wanted) {
    no = yes;
    yes *= 0.1;
    if (yes < std::numeric_limits<double>::min()) return 0.0;
  }
  while (no > yes * (1.0 + kBisected)) {
    const double middle = std::sqrt(yes * no);
    (effective_number(log_weight, middle) >= wanted ? yes : no) = middle;
  }
  return yes;
}

TemperedPopulation temper(const Posterior& posterior, SamplingBudget& budget, const RunContext& run) {
  TemperedPopulation population;
  const auto n = static_cast<std::size_t>(
      std::clamp<std::int64_t>(budget.left() / 2, 1, static_cast<std::int64_t>(kCandidates)));
  const auto ended = [&](SamplingStatus status) {
    population.status = status;
    population.points.clear();
    return population;
  };
  if (const auto status = budget.reason_to_end(n); status != SamplingStatus::complete) return ended(status);
  population.candidates = Matrix<double>(n, posterior.prior().dim());
  draw_candidates(posterior.prior(), run, Stream::sampler, 0, population.candidates);
  std::vector<double> log_ratio(n);
  posterior.log_ratio(population.candidates, log_ratio);
  budget.spend(n);
  const auto alive = static_cast<double>(
      std::count_if(log_ratio.begin(), log_ratio.end(), [](double r) { return r != kMinusInfinity; }));
  if (alive == 0.0) return ended(SamplingStatus::no_support);
  const double worth =
      std::min({static_cast<double>(kPopulation), static_cast<double>(n) / 10.0, kKept * alive});
  double exponent = largest_exponent(log_ratio, worth, 1.0);
  if (const auto status = budget.reason_to_end(kPopulation); status != SamplingStatus::complete)
    return ended(status);
  RandomStream random(run.seed, Stream::resampling);
  population.points =
      points_at(posterior, population.candidates,
                systematic_rows(weights_at(log_ratio, exponent), kPopulation, random.uniform()), budget);
  if (population.points.empty()) return ended(SamplingStatus::no_support);
  population.width = spread_of(population.points);
  if (exponent == 1.0) return population;
  ChainEnsemble moves(posterior, budget, run.seed, kFirstRow, population.points, population.width);
  while (exponent < 1.0) {
    ++population.num_stages;
    const std::vector<TemperedPoint>& points = moves.points();
    const double step =
        largest_exponent(log_ratios_of(points), kKept * static_cast<double>(points.size()), 1.0 - exponent);
    const double next = std::min(1.0, std::max(exponent + step, exponent * kLeastGrowth));
    moves.move_to(resampled(points, next - exponent, random.uniform()));
    exponent = step == 1.0 - exponent ? 1.0 : next;
    const ModeJumps jumps(rows_of(moves.points()));
    for (std::size_t s = 0; s < kSweepsPerStage; ++s) {
      if (!moves.sweep(exponent) || !moves.jump(jumps, exponent))
        return ended(budget.reason_to_end(kPopulation));
      moves.adapt_widths(1.0);
    }
  }
  population.points = moves.points();
  population.width = moves.width();
  return population;
}

}  // namespace nrec
