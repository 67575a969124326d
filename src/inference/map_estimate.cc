#include "nrec/inference/map_estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "inference/evolution_strategy.h"
#include "nrec/core/error.h"
#include "nrec/core/stop.h"

namespace nrec {

namespace {

constexpr std::size_t kSearches = 8;
constexpr std::size_t kFewestDraws = 100;       // that show where the posterior is
constexpr std::size_t kPriorDraws = 10000;      // where there are too few posterior draws
constexpr std::size_t kMostStartDraws = 20000;  // whose densities are looked at
constexpr std::size_t kGenerations = 200;       // and for each dimension:
constexpr std::size_t kGenerationsPerDim = 100;
constexpr std::uint64_t kFirstRow = std::uint64_t{1} << 63;  // of the sampler's stream: no candidate has it
constexpr double kSameDensity = 0.01;                        // nats
constexpr double kSameTheta = 0.1;                           // standard deviations

/// The interval that a column of the draws spans, and their standard deviation.
struct Range {
  double low = 0.0, high = 0.0, sd = 1.0;
};

/// Mean-free second moments of the columns: only the diagonal when there are few rows.
Matrix<double> covariance_of(MatrixView<const double> points) {
  const std::size_t dim = points.cols;
  const double n = static_cast<double>(points.rows);
  std::vector<double> mean(dim);
  for (std::size_t i = 0; i < points.rows; ++i) {
    for (std::size_t d = 0; d < dim; ++d) mean[d] += points(i, d) / n;
  }
  Matrix<double> covariance(dim, dim);
  for (std::size_t i = 0; i < points.rows; ++i) {
    for (std::size_t a = 0; a < dim; ++a) {
      for (std::size_t b = 0; b < dim; ++b) {
        if (a == b || points.rows >= 4 * dim)
          covariance(a, b) += (points(i, a) - mean[a]) * (points(i, b) - mean[b]) / n;
      }
    }
  }
  return covariance;
}

class MapSearch {
 public:
  MapSearch(const Posterior& posterior, MatrixView<const double> draws, const RunContext& run)
      : posterior_(posterior), run_(run), dim_(posterior.prior().dim()) {
    choose_starts(draws);
  }

  MapEstimate find() {
    estimate_.is_complete = true;
    const std::size_t most = kGenerations + kGenerationsPerDim * dim_;
    for (std::size_t generation = 0; has_active(); ++generation) {
      if (generation == most || run_.stop_requested() || watch_.seconds() > run_.time_limit) {
        estimate_.is_complete = false;
        break;
      }
      advance();
    }
    return judged();
  }

 private:
  /// Starts: the best of the draws and others spread evenly over them.
  void choose_starts(MatrixView<const double> draws) {
    const Prior& prior = posterior_.prior();
    if (draws.rows >= kFewestDraws) {
      const std::size_t step = (draws.rows + kMostStartDraws - 1) / kMostStartDraws;
      starts_ = Matrix<double>((draws.rows + step - 1) / step, dim_);
      for (std::size_t i = 0; i < starts_.rows(); ++i)
        std::ranges::copy(draws.row(i * step), starts_.row(i).begin());
    } else {
      starts_ = Matrix<double>(kPriorDraws, dim_);
      prior.sample(run_.seed, Stream::check, 0, starts_);
    }
    density_ = evaluated(starts_);
    Matrix<double> u(starts_.rows(), dim_);
    prior.to_unbounded(starts_, u);
    const Matrix<double> covariance = covariance_of(u);
    for (std::size_t d = 0; d < dim_; ++d) {
      Range range{u(0, d), u(0, d), std::sqrt(covariance(d, d))};
      for (std::size_t i = 0; i < u.rows(); ++i) {
        range.low = std::min(range.low, u(i, d));
        range.high = std::max(range.high, u(i, d));
      }
      if (!(range.sd > 0)) range.sd = 1.0;
      box_.push_back(range);
    }
    best_ = static_cast<std::size_t>(std::ranges::max_element(density_) - density_.begin());
    ends_ = Matrix<double>(kSearches, dim_);
    end_density_.assign(kSearches, -std::numeric_limits<double>::infinity());
    for (std::size_t s = 0; s < kSearches; ++s) {
      const std::size_t row = s == 0 ? best_ : s * starts_.rows() / kSearches;
      searches_.emplace_back(std::as_const(u).row(row), covariance,
                             RandomStream(run_.seed, Stream::sampler, kFirstRow + s));
    }
  }

  std::vector<double> evaluated(MatrixView<const double> theta) {
    std::vector<double> log_density(theta.rows);
    posterior_.log_density(theta, log_density);
    estimate_.evaluations += static_cast<std::int64_t>(theta.rows);
    return log_density;
  }

  bool has_active() const {
    return std::ranges::any_of(searches_, [](const EvolutionStrategy& s) { return !s.has_converged(); });
  }

  /// One generation of all searches that go on, evaluated together.
  void advance() {
    const std::size_t points = searches_[0].num_points();
    Matrix<double> u(kSearches * points, dim_);
    std::vector<std::size_t> active;
    for (std::size_t s = 0; s < kSearches; ++s) {
      if (searches_[s].has_converged()) continue;
      searches_[s].ask(u.view().middle_rows(active.size() * points, points));
      active.push_back(s);
    }
    const MatrixView<double> asked = u.view().middle_rows(0, active.size() * points);
    Matrix<double> theta(asked.rows, dim_);
    const std::vector<double> penalty = move_into_box(asked, theta);
    posterior_.prior().to_constrained(theta, theta);
    std::vector<double> log_density = evaluated(theta);
    for (std::size_t i = 0; i < log_density.size(); ++i) {
      keep_best(active[i / points], theta.row(i), log_density[i]);
      log_density[i] -= penalty[i];
    }
    for (std::size_t k = 0; k < active.size(); ++k)
      searches_[active[k]].tell(asked.middle_rows(k * points, points),
                                std::span(log_density).subspan(k * points, points));
  }

  /// Points of the box that the draws span, nearest to those asked for; returns what the distance costs. Beyond the draws a
  /// trained network only extrapolates, and may rise without limit towards a bound that is infinitely far away.
  std::vector<double> move_into_box(MatrixView<const double> asked, MatrixView<double> moved) const {
    std::vector<double> penalty(asked.rows);
    for (std::size_t i = 0; i < asked.rows; ++i) {
      for (std::size_t d = 0; d < dim_; ++d) {
        moved(i, d) = std::clamp(asked(i, d), box_[d].low, box_[d].high);
        const double distance = (asked(i, d) - moved(i, d)) / box_[d].sd;
        penalty[i] += 0.5 * distance * distance;
      }
    }
    return penalty;
  }

  void keep_best(std::size_t search, std::span<const double> theta, double log_density) {
    if (!(log_density > end_density_[search])) return;
    end_density_[search] = log_density;
    std::ranges::copy(theta, ends_.row(search).begin());
  }

  /// The best end of all searches, and how many ended there.
  MapEstimate judged() {
    estimate_.num_searches = kSearches;
    estimate_.log_density = density_[best_];
    estimate_.theta.assign(starts_.row(best_).begin(), starts_.row(best_).end());
    for (std::size_t s = 0; s < kSearches; ++s) {
      if (!(end_density_[s] > estimate_.log_density)) continue;
      estimate_.log_density = end_density_[s];
      estimate_.theta.assign(ends_.row(s).begin(), ends_.row(s).end());
    }
    const Matrix<double> covariance = covariance_of(starts_);
    for (std::size_t s = 0; s < kSearches; ++s) {
      bool is_same = estimate_.log_density - end_density_[s] < kSameDensity;
      for (std::size_t d = 0; d < dim_; ++d)
        is_same = is_same &&
                  std::fabs(ends_(s, d) - estimate_.theta[d]) <= kSameTheta * std::sqrt(covariance(d, d));
      estimate_.agreement += is_same ? 1.0 / kSearches : 0.0;
    }
    return estimate_;
  }

  const Posterior& posterior_;
  const RunContext& run_;
  std::size_t dim_;
  Stopwatch watch_;
  Matrix<double> starts_;
  std::vector<double> density_;  // at starts_
  std::size_t best_ = 0;         // of starts_
  std::vector<Range> box_;       // of the draws in unbounded space
  std::vector<EvolutionStrategy> searches_;
  Matrix<double> ends_;              // best theta of each search
  std::vector<double> end_density_;  // there
  MapEstimate estimate_;
};

}  // namespace

MapEstimate find_map(const Posterior& posterior, MatrixView<const double> draws, const RunContext& run) {
  if (draws.rows > 0 && draws.cols != posterior.prior().dim()) {
    throw ShapeError("map: draws have " + std::to_string(draws.cols) + " columns; the posterior has " +
                     std::to_string(posterior.prior().dim()) + " parameters");
  }
  if (!posterior.prior().has_density()) {
    throw UnsupportedError(
        "map: the prior is given by samples and has no density, so the posterior has no mode; give "
        "[parameters] as distributions, or leave map out");
  }
  return MapSearch(posterior, draws, run).find();
}

}  // namespace nrec
