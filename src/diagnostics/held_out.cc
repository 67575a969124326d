#include "nrec/diagnostics/held_out.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "nrec/core/error.h"
#include "nrec/inference/sample.h"

namespace nrec {

namespace {

constexpr double kEnoughEffectiveDraws = 20.0;  // fewer: more prior draws
constexpr double kLeastEffectiveDraws = 3.0;    // still fewer: a sampler
constexpr std::size_t kMoreDraws = 10;          // times num_prior_draws, for narrow posteriors
constexpr std::size_t kFewestSampled = 50;      // draws of a sampler; with fewer the weighted ones are kept
constexpr std::size_t kRowsOfAThread = 4;       // between two looks at the clock
// Numbers of random rows: a held-out row has 2^24 of them, its second set of prior draws starts at 2^20.
constexpr int kRowBits = 24;
constexpr std::uint64_t kSecondSet = 1 << 20;
constexpr std::uint64_t kUniforms = (1 << kRowBits) - 1;
constexpr double kSampledEvaluations = 1e6;  // of one row
constexpr double kSampledSeconds = 60.0;

/// What one row says.
struct RowResult {
  PosteriorRanks ranks;
  double log_ratio = 0.0;
  LogMeanExp z;
  double effective_draws = 0.0;
  std::vector<double> draw, prior_draw;
  double draw_log_ratio = 0.0, draw_log_z = 0.0, other_log_z = 0.0, prior_log_ratio = 0.0;
  bool has_more_draws = false, is_sampled = false, has_no_support = false;
};

/// The true theta (point 0) and draws, with their log ratios and log priors.
struct Points {
  Matrix<double> theta;
  std::vector<double> log_ratio, log_prior;

  std::span<const double> draw_ratios() const { return std::span(log_ratio).subspan(1); }
};

class Row {
 public:
  Row(const Prior& prior, const Posterior& posterior, std::span<const double> truth, std::size_t index,
      const HeldOutOptions& options, const RunContext& run)
      : prior_(prior),
        posterior_(posterior),
        truth_(truth),
        first_(static_cast<std::uint64_t>(index + 1) << kRowBits),
        options_(options),
        run_(run),
        sampler_seed_(observation_seed(run.seed, index + 1)),
        random_(run.seed, Stream::check, first_ + kUniforms) {}

  RowResult look() {
    RowResult row;
    Points points = prior_points(options_.num_prior_draws, 0);
    row.effective_draws = effective(points);
    if (row.effective_draws < kEnoughEffectiveDraws) {
      points = prior_points(kMoreDraws * options_.num_prior_draws, kSecondSet);
      row.effective_draws = effective(points);
      row.has_more_draws = true;
    }
    row.log_ratio = points.log_ratio[0];
    row.z = log_mean_exp(points.draw_ratios());
    draw_for_classifier(points, row);
    std::optional<Points> sampled;
    const bool is_narrow = row.effective_draws < kLeastEffectiveDraws && std::isfinite(row.z.value);
    if (is_narrow && options_.num_posterior_draws > 0) sampled = sampler_points();
    if (sampled) use_sampled(*sampled, row);
    rank(sampled ? *sampled : points, row);
    return row;
  }

 private:
  Points evaluated(Matrix<double> theta) const {
    std::copy(truth_.begin(), truth_.end(), theta.row(0).begin());
    Points points{std::move(theta), {}, {}};
    points.log_ratio.resize(points.theta.rows());
    points.log_prior.assign(points.theta.rows(), 0.0);
    posterior_.log_ratio(points.theta, points.log_ratio);
    if (prior_.has_density()) prior_.log_prob(points.theta, points.log_prior);
    return points;
  }

  Points prior_points(std::size_t count, std::uint64_t offset) const {
    Matrix<double> theta(count + 1, truth_.size());
    prior_.sample(run_.seed, Stream::check, first_ + offset, theta.view().middle_rows(1, count));
    return evaluated(std::move(theta));
  }

  /// Of the draws alone: what is decided by it must not depend on the true theta.
  static double effective(const Points& points) {
    const LogMeanExp mean = log_mean_exp(points.draw_ratios());
    // (sum w)^2 / sum w^2
    return 1.0 / (mean.relative_variance + 1.0 / static_cast<double>(points.theta.rows() - 1));
  }

  std::optional<Points> sampler_points() const {
    SamplingOptions options;
    options.method = prior_.has_density() ? "slice" : "auto";  // prior draws have been tried
    options.num_samples = static_cast<std::int64_t>(options_.num_posterior_draws);
    options.max_evaluations = static_cast<std::int64_t>(kSampledEvaluations);
    options.max_seconds = kSampledSeconds;
    RunContext context = run_;
    context.seed = sampler_seed_;
    const PosteriorDraws draws = sample(posterior_, options, context);
    if (draws.size() < std::min(kFewestSampled, options_.num_posterior_draws)) return std::nullopt;
    Matrix<double> theta(draws.size() + 1, truth_.size());
    std::copy(draws.theta.values().begin(), draws.theta.values().end(), theta.row(1).begin());
    return evaluated(std::move(theta));
  }

  void use_sampled(const Points& sampled, RowResult& row) {
    row.is_sampled = true;
    row.effective_draws = static_cast<double>(sampled.theta.rows() - 1);
    const auto k = static_cast<std::size_t>(1 + random_.integer(sampled.theta.rows() - 1));
    row.draw.assign(sampled.theta.row(k).begin(), sampled.theta.row(k).end());
    row.draw_log_ratio = sampled.log_ratio[k];
  }

  /// A draw from the first half of the prior draws, the mean ratio of both halves, and a prior draw as it is. A draw picked by
  /// its ratio and weighted by the mean ratio of its own half has exactly the law of ratio times prior; the mean of the other half
  /// is independent of it, and so may be shown to a classifier.
  void draw_for_classifier(const Points& points, RowResult& row) {
    const std::span<const double> ratios = points.draw_ratios();
    const std::size_t half = ratios.size() / 2;
    row.draw_log_z = log_mean_exp(ratios.first(half)).value;
    row.other_log_z = log_mean_exp(ratios.subspan(half)).value;
    double left = random_.uniform() * static_cast<double>(half);  // weights relative to their mean
    std::size_t picked = half;
    for (std::size_t k = 0; k < half; ++k) {
      const double weight = std::exp(ratios[k] - row.draw_log_z);
      if (!(weight > 0.0)) continue;
      picked = k;
      left -= weight;
      if (left <= 0.0) break;
    }
    const std::size_t point = picked == half ? 1 : picked + 1;
    row.draw.assign(points.theta.row(point).begin(), points.theta.row(point).end());
    row.draw_log_ratio = points.log_ratio[point];
    const std::size_t last = points.theta.rows() - 1;
    row.prior_draw.assign(points.theta.row(last).begin(), points.theta.row(last).end());
    row.prior_log_ratio = points.log_ratio[last];
  }

  void rank(const Points& points, RowResult& row) {
    std::vector<double> log_weights = points.log_ratio, log_density = points.log_ratio;
    for (std::size_t k = 0; k < log_density.size(); ++k) log_density[k] += points.log_prior[k];
    row.has_no_support = !std::isfinite(*std::max_element(log_weights.begin(), log_weights.end()));
    if (row.is_sampled || row.has_no_support) std::fill(log_weights.begin(), log_weights.end(), 0.0);
    row.ranks = posterior_ranks(points.theta, log_weights, log_density, random_);
    if (row.has_no_support) row.ranks.own_share = 1.0;
  }

  const Prior& prior_;
  const Posterior& posterior_;
  std::span<const double> truth_;
  std::uint64_t first_;
  const HeldOutOptions& options_;
  const RunContext& run_;
  std::uint64_t sampler_seed_;
  RandomStream random_;
};

void append(RowResult&& row, HeldOutRatios& all) {
  all.draws.values().insert(all.draws.values().end(), row.draw.begin(), row.draw.end());
  all.prior_draws.values().insert(all.prior_draws.values().end(), row.prior_draw.begin(),
                                  row.prior_draw.end());
  all.ranks.push_back(std::move(row.ranks));
  all.log_ratio.push_back(row.log_ratio);
  all.z.push_back(row.z);
  all.effective_draws.push_back(row.effective_draws);
  all.draw_log_ratio.push_back(row.draw_log_ratio);
  all.draw_log_z.push_back(row.draw_log_z);
  all.other_log_z.push_back(row.other_log_z);
  all.prior_log_ratio.push_back(row.prior_log_ratio);
  all.num_more_draws += row.has_more_draws;
  all.num_sampled += row.is_sampled;
  all.num_without_support += row.has_no_support;
}

void report(std::size_t done, std::size_t total, double seconds, LogSink& log) {
  const auto n = static_cast<double>(done);
  log.progress({.stage = "checking",
                .done = n,
                .total = static_cast<double>(total),
                .unit = "held-out row",
                .seconds_left = seconds * (static_cast<double>(total) - n) / n,
                .detail = ""});
}

void check(const Prior& prior, MatrixView<const double> theta, const HeldOutOptions& options) {
  if (theta.rows == 0 || theta.cols != prior.dim())
    throw ShapeError("check: theta is [" + std::to_string(theta.rows) + ", " + std::to_string(theta.cols) +
                     "]; it must have " + std::to_string(prior.dim()) + " columns and at least one row");
  if (options.num_prior_draws < 2)
    throw DomainError("check: num_prior_draws = " + std::to_string(options.num_prior_draws) +
                      " must be at least 2");
}

}  // namespace

double HeldOutRatios::mean_own_share() const {
  double sum = 0.0;
  for (const PosteriorRanks& rank : ranks) sum += rank.own_share;
  return ranks.empty() ? 1.0 : sum / static_cast<double>(ranks.size());
}

std::vector<double> HeldOutRatios::parameter_ranks(std::size_t column) const {
  std::vector<double> values;
  for (const PosteriorRanks& rank : ranks) values.push_back(rank.parameter[column]);
  return values;
}

std::vector<double> HeldOutRatios::density_ranks() const {
  std::vector<double> values;
  for (const PosteriorRanks& rank : ranks) values.push_back(rank.density);
  return values;
}

std::vector<double> HeldOutRatios::distance_ranks() const {
  std::vector<double> values;
  for (const PosteriorRanks& rank : ranks) values.push_back(rank.distance);
  return values;
}

HeldOutRatios evaluate_held_out(const Prior& prior, const PosteriorMaker& posterior,
                                MatrixView<const double> theta, const HeldOutOptions& options,
                                const RunContext& run) {
  check(prior, theta, options);
  const std::size_t total = options.max_rows == 0 ? theta.rows : std::min(options.max_rows, theta.rows);
  const std::size_t step = kRowsOfAThread * static_cast<std::size_t>(run.pool.num_threads());
  const Stopwatch watch;
  HeldOutRatios all;
  all.draws = Matrix<double>(0, theta.cols);
  all.prior_draws = Matrix<double>(0, theta.cols);
  for (std::size_t first = 0; first < total; first += step) {
    if (run.stop_requested() || watch.seconds() > run.time_limit) {
      all.is_complete = false;
      break;
    }
    std::vector<RowResult> rows(std::min(step, total - first));
    run.pool.run(rows.size(), [&](std::size_t task, int) {
      ThreadPool alone(1);
      const RunContext context = {.pool = alone, .seed = run.seed, .isa = run.isa, .stop = run.stop};
      const std::size_t i = first + task;
      const Posterior at_row = posterior(i, context);
      rows[task] = Row(prior, at_row, theta.row(i), i, options, context).look();
    });
    for (RowResult& row : rows) append(std::move(row), all);
    report(first + rows.size(), total, watch.seconds(), run.log);
  }
  const std::size_t n = all.num_rows();
  all.draws = Matrix<double>(n, theta.cols, std::move(all.draws.values()));
  all.prior_draws = Matrix<double>(n, theta.cols, std::move(all.prior_draws.values()));
  return all;
}

}  // namespace nrec
