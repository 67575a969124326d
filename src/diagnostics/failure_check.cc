#include "diagnostics/failure_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace nrec {

std::int64_t num_dropped(const RatioEstimator& estimator) {
  const RecordValue* value = estimator.settings.find("num_dropped");
  const auto* count = value ? std::get_if<std::int64_t>(value) : nullptr;
  return count ? *count : 0;
}

bool is_normalised(const RatioEstimator& estimator) {
  const RecordValue* loss = estimator.settings.find("loss");
  return !loss || std::get<std::string>(*loss) != "nre-b";
}

namespace {

constexpr double kMostStandardErrors = 4.0;  // of a held-out rate of success
constexpr double kFewFailures = 0.05;  // share of failures near the posterior that its shape does not show

std::string text_of(const char* format, double value) {
  char text[256];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// Share of failures among the simulations near the posterior if all failures were there: an upper bound. A posterior that
/// fills the fraction q of the prior has a mean ratio of 1 / q over its draws.
double most_failures_nearby(const SuccessModel& success, const PosteriorDraws& draws) {
  double sum = 0.0;
  for (const double log_ratio : draws.log_ratio) sum += std::exp(log_ratio);
  const double fraction = std::min(1.0, static_cast<double>(draws.log_ratio.size()) / sum);
  const double failed = static_cast<double>(success.num_failed);
  return failed / (failed + fraction * static_cast<double>(success.num_ok));
}

CheckItem dropped_item(std::int64_t dropped) {
  return {
      "failures", Verdict::cannot_tell,
      std::to_string(dropped) +
          " failed simulations were dropped, so the posterior is off by the factor 1 / P(ok | theta): "
          "parameters that often fail look more probable than they are. Take failures = \"model\", unless "
          "failures do not depend on theta or are accidents that say nothing about x"};
}

CheckItem modelled_item(const RatioEstimator& estimator, const PosteriorDraws& draws, const RunContext& run,
                        Record& record) {
  const SuccessModel& success = *estimator.success;
  CheckItem item{"failures", Verdict::trusted, success.sentence()};
  record.set("failures.kind", success_kind_name(success.kind));
  if (success.kind == SuccessKind::too_few) {
    const bool known = is_normalised(estimator) && !draws.log_ratio.empty();
    const double share = known ? most_failures_nearby(success, draws) : 1.0;
    record.set("failures.most_nearby", share);
    if (share > kFewFailures) item.verdict = Verdict::cannot_tell;
    item.sentence += known ? text_of(
                                 "; were all failures where the posterior is, they would be %.2g %% of the "
                                 "simulations there",
                                 100 * share)
                           : "; whether they are where the posterior is, is not known";
  }
  if (success.kind == SuccessKind::network) {
    const double z = success.calibration.z_score();
    record.set("failures.z_score", z);
    if (std::fabs(z) > kMostStandardErrors) {
      item.verdict = Verdict::cannot_tell;
      item.sentence += text_of("; that is %.1f standard errors apart: simulate more", z);
    }
    if (draws.size() > 0) {
      std::vector<double> log_p(draws.size());
      SuccessEvaluator(success, estimator.prior, run)(draws.theta, log_p);
      double mean = 0.0;
      for (const double value : log_p) mean += std::exp(value) / static_cast<double>(log_p.size());
      record.set("failures.mean_success_of_draws", mean);
      item.sentence += text_of("; mean over the draws %.3f", mean);
    }
  }
  return item;
}

}  // namespace

std::optional<CheckItem> failure_item(const RatioEstimator& estimator, const PosteriorDraws& draws,
                                      const RunContext& run, Record& record) {
  if (estimator.success) return modelled_item(estimator, draws, run, record);
  const std::int64_t dropped = num_dropped(estimator);
  if (dropped > 0) return dropped_item(dropped);
  return std::nullopt;
}

}  // namespace nrec
