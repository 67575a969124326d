#include "nrec/diagnostics/quick_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "diagnostics/failure_check.h"
#include "diagnostics/observed_items.h"
#include "nrec/core/error.h"
#include "nrec/core/random.h"
#include "nrec/diagnostics/sharpness_check.h"
#include "nrec/diagnostics/uniformity.h"
#include "nrec/inference/posterior.h"

namespace nrec {

namespace {

constexpr std::size_t kCoverageRows = 200;      // held-out rows whose ranks are taken
constexpr std::size_t kPriorDraws = 4000;       // shared prior draws that stand for every posterior
constexpr std::size_t kMorePriorDraws = 40000;  // for posteriors too narrow for these
constexpr double kLeastEffectiveDraws = 20.0;   // below, an importance-weighted rank says nothing
constexpr double kLevel = 0.001;       // of each test: a trusted run should stay so in 999 of 1000 cases
constexpr double kUnsureLevel = 0.02;  // p-values between the two levels leave the answer open
constexpr double kRatioFactor = 1.5;   // a mean ratio within this factor of 1 is good
constexpr double kFewFailures = 0.05;  // share of failures near the posterior that its shape does not show

std::string text_of(const char* format, double a, double b = 0, double c = 0) {
  char text[256];
  std::snprintf(text, sizeof text, format, a, b, c);
  return text;
}

/// Highest-density ranks: for each held-out pair, the posterior mass at higher density than the true theta.
struct Ranks {
  std::vector<double> alpha;       // in [0, 1]; uniform for an exact posterior
  std::size_t num_unreliable = 0;  // rows whose posterior is too narrow for the prior draws
  double mean_log_z = 0.0;         // over rows
  double mean_z = 0.0;
};

/// What importance weights of prior draws say about one posterior.
struct WeightedRank {
  double alpha = 0.0;            // mass at higher density than point 0
  double effective_draws = 0.0;  // (sum w)^2 / sum w^2
  double log_z = 0.0;
};

/// Point 0 is the true theta, the others are prior draws.
WeightedRank weighted_rank(const Posterior& posterior, MatrixView<const double> points,
                           std::vector<double>& log_prior) {
  std::vector<double> log_ratio(points.rows);
  posterior.log_ratio(points, log_ratio);
  if (posterior.prior().has_density())
    posterior.prior().log_prob(points, std::span(log_prior).first(points.rows));
  const double top = *std::max_element(log_ratio.begin(), log_ratio.end());
  double total = 0.0, square = 0.0, higher = 0.0;
  for (std::size_t k = 1; k < points.rows; ++k) {
    const double weight = std::exp(log_ratio[k] - top);
    total += weight;
    square += weight * weight;
    if (log_ratio[k] + log_prior[k] > log_ratio[0] + log_prior[0]) higher += weight;
  }
  return {higher / total, total * total / square,
          top + std::log(total / static_cast<double>(points.rows - 1))};
}

Ranks density_ranks(const RatioEstimator& estimator, MatrixView<const double> theta,
                    MatrixView<const double> x, const RunContext& run) {
  Matrix<double> points(kMorePriorDraws + 1, estimator.prior.dim());
  estimator.prior.sample(run.seed, Stream::check, 1, points.view().middle_rows(1, kMorePriorDraws));
  std::vector<double> log_prior(points.rows(), 0.0);
  Ranks ranks;
  std::size_t used = 0;
  const AmortisedPosterior posteriors(estimator, run.pool);
  for (std::size_t i = 0; i < std::min(theta.rows, kCoverageRows) && !run.stop_requested(); ++i) {
    std::copy(theta.row(i).begin(), theta.row(i).end(), points.row(0).begin());
    const Posterior posterior = posteriors.at(x.row(i), run);
    WeightedRank rank = weighted_rank(posterior, points.view().middle_rows(0, kPriorDraws + 1), log_prior);
    // A posterior too narrow for few draws gets many.
    if (!(rank.effective_draws >= kLeastEffectiveDraws)) rank = weighted_rank(posterior, points, log_prior);
    ++used;
    ranks.mean_log_z += rank.log_z;
    ranks.mean_z += std::exp(rank.log_z);
    if (rank.effective_draws >= kLeastEffectiveDraws) {
      ranks.alpha.push_back(rank.alpha);
    } else {
      ++ranks.num_unreliable;
    }
  }
  if (used > 0) {
    ranks.mean_log_z /= static_cast<double>(used);
    ranks.mean_z /= static_cast<double>(used);
  }
  std::sort(ranks.alpha.begin(), ranks.alpha.end());
  return ranks;
}

Verdict verdict_of(double p_value) {
  return p_value < kLevel ? Verdict::not_trusted
                          : (p_value < kUnsureLevel ? Verdict::cannot_tell : Verdict::trusted);
}

CheckItem coverage_item(const Ranks& ranks, std::size_t rows, Record& record) {
  CheckItem item{"coverage", Verdict::cannot_tell, ""};
  const double n = static_cast<double>(ranks.alpha.size());
  record.set("coverage.rows", ranks.alpha.size());
  record.set("coverage.rows_too_narrow", ranks.num_unreliable);
  if (ranks.alpha.size() < 50 || ranks.num_unreliable * 4 > rows) {
    item.sentence =
        rows == 0
            ? "no held-out simulations, so nothing is known about coverage (nrec sample has none; nrec infer "
              "--resume in the folder of the "
              "training does)"
            : text_of(
                  "only %.0f of %.0f held-out posteriors could be judged from %.0f prior draws (the others "
                  "are too narrow, or there are too few); this check has no answer for them",
                  n, static_cast<double>(rows), static_cast<double>(kMorePriorDraws));
    return item;
  }
  double statistic = 0.0, mean = 0.0;
  for (std::size_t i = 0; i < ranks.alpha.size(); ++i) {
    statistic = std::max({statistic, static_cast<double>(i + 1) / n - ranks.alpha[i],
                          ranks.alpha[i] - static_cast<double>(i) / n});
    mean += ranks.alpha[i] / n;
  }
  const double p = kolmogorov_p_value(statistic, n);
  const auto covered = [&](double level) {
    return static_cast<double>(std::lower_bound(ranks.alpha.begin(), ranks.alpha.end(), level) -
                               ranks.alpha.begin()) /
           n;
  };
  record.set("coverage.p_value", p);
  record.set("coverage.ks_statistic", statistic);
  record.set("coverage.levels", std::vector<double>{0.5, 0.68, 0.9, 0.95});
  record.set("coverage.covered",
             std::vector<double>{covered(0.5), covered(0.68), covered(0.9), covered(0.95)});
  item.verdict = verdict_of(p);
  item.sentence = text_of("90 %% regions hold %.0f %% of held-out thetas", 100 * covered(0.9)) +
                  text_of(" (p = %.2g over %.0f rows)", p, n);
  if (item.verdict == Verdict::not_trusted) {
    item.sentence += mean > 0.5
                         ? "; posteriors are too narrow: simulate more, lower gamma, or take fewer epochs; "
                           "also check that theta comes from this prior, column by column"
                         : "; posteriors are too wide: train longer (fewer num_classes or a smaller "
                           "network make epochs quicker), or with a larger network if it has "
                           "converged; also check that theta comes from this prior";
  } else if (item.verdict == Verdict::cannot_tell) {
    item.sentence += "; borderline: hold out more simulations";
  }
  return item;
}

CheckItem normalisation_item(const RatioEstimator& estimator, const Ranks& ranks, std::size_t rows,
                             Record& record) {
  CheckItem item{"normalisation", Verdict::trusted, ""};
  if (!is_normalised(estimator)) {
    item.sentence = "NRE-B leaves the ratio free up to a function of x, so its normalisation says nothing";
    return item;
  }
  if (rows == 0) {
    item.verdict = Verdict::cannot_tell;
    item.sentence = "no held-out simulations to take the mean ratio over";
    return item;
  }
  record.set("normalisation.mean_ratio", ranks.mean_z);
  record.set("normalisation.mean_log_z", ranks.mean_log_z);
  const double geometric = std::exp(ranks.mean_log_z);
  const bool good = geometric < kRatioFactor && geometric > 1.0 / kRatioFactor;
  item.verdict = good ? Verdict::trusted : Verdict::cannot_tell;
  item.sentence = text_of("mean log of the ratio averaged over the prior is %.3f (0 for an exact ratio)",
                          ranks.mean_log_z);
  if (!good)
    item.sentence +=
        "; the posterior's shape may still be right, its evidence is not: simulate more or train longer";
  return item;
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::trusted:
      return "trusted";
    case Verdict::cannot_tell:
      return "cannot tell";
    case Verdict::not_trusted:
      break;
  }
  return "not trusted";
}

namespace {

/// The worst item decides.
void decide(CheckReport& report) {
  report.verdict = Verdict::trusted;
  const CheckItem* deciding = nullptr;
  for (const CheckItem& item : report.items) {
    if (!deciding || item.verdict > report.verdict) {
      report.verdict = std::max(report.verdict, item.verdict);
      deciding = &item;
    }
    report.record.set(item.name + ".verdict", verdict_name(item.verdict));
  }
  report.sentence = report.verdict == Verdict::trusted
                        ? passed_sentence("all quick checks passed", report.items)
                        : deciding->name + ": " + deciding->sentence;
  report.record.set("verdict", verdict_name(report.verdict));
  report.record.set("verdict_sentence", report.sentence);
}

void check_shapes(const ObservedDraws& observed, MatrixView<const double> held_out_theta,
                  MatrixView<const double> held_out_x) {
  if (held_out_theta.rows != held_out_x.rows) {
    throw ShapeError("check: held_out_theta has " + std::to_string(held_out_theta.rows) +
                     " rows but held_out_x has " + std::to_string(held_out_x.rows));
  }
  if (observed.draws.size() != 1 && (observed.draws.empty() || observed.draws.size() != observed.x_o.rows)) {
    throw ConfigError("check: there are " + std::to_string(observed.draws.size()) + " sets of draws and " +
                      std::to_string(observed.x_o.rows) +
                      " rows of x_o; there must be one set for all rows, or one for every row");
  }
}

}  // namespace

std::string passed_sentence(std::string_view all, std::span<const CheckItem> items) {
  std::string sentence(all);
  for (const CheckItem& item : items) {
    if (!item.caveat.empty()) sentence += "; but " + item.caveat;
  }
  return sentence;
}

CheckReport quick_check(const RatioEstimator& estimator, const ObservedDraws& observed,
                        MatrixView<const double> held_out_theta, MatrixView<const double> held_out_x,
                        const RunContext& run) {
  check_shapes(observed, held_out_theta, held_out_x);
  const Stopwatch watch;
  CheckReport report;
  report.items.push_back(range_item(estimator, observed.x_o, report.record));
  const std::size_t rows = std::min(held_out_theta.rows, kCoverageRows);
  const Ranks ranks = rows > 0 ? density_ranks(estimator, held_out_theta, held_out_x, run) : Ranks{};
  report.items.push_back(coverage_item(ranks, rows, report.record));
  if (num_dropped(estimator) > 0 && report.record.find("coverage.p_value") &&
      report.items.back().verdict != Verdict::trusted)
    report.items.back().sentence += "; the failed simulations that were dropped bias it, too";
  if (observed.has_iid_rows())
    report.items.push_back(iid_item(observed.x_o.rows, ranks.alpha.size(), report.record));
  report.items.push_back(normalisation_item(estimator, ranks, rows, report.record));
  if (const auto item = failure_item(estimator, pooled_draws(observed), run, report.record))
    report.items.push_back(*item);
  if (const auto item = sharpness_item(estimator, report.record)) report.items.push_back(*item);
  report.items.push_back(draws_item(observed.draws, report.record));
  decide(report);
  report.record.set("seconds", watch.seconds());
  return report;
}

CheckReport quick_check(const RatioEstimator& estimator, std::span<const double> x_o,
                        const PosteriorDraws& draws, MatrixView<const double> held_out_theta,
                        MatrixView<const double> held_out_x, const RunContext& run) {
  return quick_check(estimator, {{x_o.data(), 1, x_o.size()}, {&draws, 1}}, held_out_theta, held_out_x, run);
}

}  // namespace nrec
