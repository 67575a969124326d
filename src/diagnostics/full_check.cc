#include "nrec/diagnostics/full_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "diagnostics/calibration_tests.h"
#include "diagnostics/check_tests.h"
#include "diagnostics/failure_check.h"
#include "diagnostics/observation_tests.h"
#include "diagnostics/observed_items.h"
#include "diagnostics/ratio_tests.h"
#include "nrec/core/error.h"
#include "nrec/core/stop.h"
#include "nrec/diagnostics/sharpness_check.h"
#include "nrec/diagnostics/uniformity.h"
#include "nrec/diagnostics/visible_errors.h"
#include "nrec/inference/sample.h"

namespace nrec {

std::string check_text(const char* format, double a, double b, double c) {
  char text[256];
  std::snprintf(text, sizeof text, format, a, b, c);
  return text;
}

namespace {

constexpr double kLevel =
    0.01;  // of all tests together: an exact posterior is refused in at most one of 100 checks
constexpr double kUnsureLevel = 0.05;  // between the two the answer is open
constexpr std::size_t kLeastRows = 50;
constexpr double kVisibleShift = 0.5;  // what a trusted check must have been able to see
constexpr double kVisibleNarrow = 0.7;
constexpr double kMostOwnShare = 0.5;  // share of chance in the ranks
constexpr std::array<std::string_view, 5> kCalibrationItems = {"ranks", "coverage", "tarp", "classifier",
                                                               "ratio"};
constexpr std::array<std::string_view, 2> kObservationItems = {"observation", "predictive"};

bool is_of_observation(const CheckTest& test) {
  return std::find(kObservationItems.begin(), kObservationItems.end(), test.item) != kObservationItems.end();
}

/// Holm's correction of the tests that `is_chosen` says yes to.
template <class Chosen>
void correct(std::vector<CheckTest>& tests, const Chosen& is_chosen) {
  std::vector<double> p_values;
  for (const CheckTest& test : tests) p_values.push_back(is_chosen(test) ? test.p_value : std::nan(""));
  const std::vector<double> adjusted = holm_adjusted(p_values);
  for (std::size_t i = 0; i < tests.size(); ++i) {
    if (is_chosen(tests[i])) tests[i].adjusted = adjusted[i];
  }
}

/// Tests about held-out rows are one question, those about the observation another. Of the latter each item gets an equal part of the
/// level: one predictive test should not have to pay for a thousand distances.
void correct(std::vector<CheckTest>& tests) {
  correct(tests, [](const CheckTest& test) { return !is_of_observation(test); });
  double items = 0.0;
  for (const std::string_view item : kObservationItems) {
    correct(tests, [&](const CheckTest& test) { return test.item == item; });
    items += std::ranges::any_of(tests, [&](const CheckTest& test) { return test.item == item; });
  }
  for (CheckTest& test : tests) {
    if (is_of_observation(test)) test.adjusted = std::min(1.0, items * test.adjusted);
  }
}

Verdict verdict_of(const CheckTest& test) {
  if (!test.is_large || !(test.adjusted < kUnsureLevel)) return Verdict::trusted;
  return test.adjusted < kLevel && test.decides ? Verdict::not_trusted : Verdict::cannot_tell;
}

/// Whether `a` says more than `b`: the worse verdict, then the less vague, then the smaller p-value.
bool says_more(const CheckTest& a, const CheckTest& b) {
  const Verdict of_a = verdict_of(a), of_b = verdict_of(b);
  if (of_a != of_b) return of_a > of_b;
  if (of_a != Verdict::trusted && a.is_vague != b.is_vague) return b.is_vague;
  return a.adjusted < b.adjusted;
}

/// The test of an item that says most; null: none was made.
const CheckTest* decisive(const std::vector<CheckTest>& tests, std::string_view item) {
  const CheckTest* most = nullptr;
  for (const CheckTest& test : tests) {
    if (test.item == item && !std::isnan(test.p_value) && (!most || says_more(test, *most))) most = &test;
  }
  return most;
}

bool shows_deviation(const CheckTest& test) { return test.adjusted < kUnsureLevel; }

std::string passed_text(const CheckTest& test) {
  if (shows_deviation(test))
    return "a small deviation is visible: " + test.effect +
           check_text(" (corrected p = %.2g)", test.adjusted);
  return check_text("nothing to see (smallest corrected p-value %.2g, ", test.adjusted) + test.name + ")";
}

CheckItem item_of(const std::vector<CheckTest>& tests, std::string_view name) {
  CheckItem item{std::string(name), Verdict::cannot_tell, "no test was possible"};
  const CheckTest* test = decisive(tests, name);
  if (!test) return item;
  item.verdict = verdict_of(*test);
  if (item.verdict == Verdict::trusted) {
    item.sentence = passed_text(*test);
    item.shows_deviation = shows_deviation(*test);
    return item;
  }
  item.sentence = test->effect + check_text(" (corrected p = %.2g)", test->adjusted) + "; " + test->advice;
  if (test->adjusted >= kLevel)
    item.sentence += name == "predictive" ? "; borderline: simulate more at the posterior (--num-predicted)"
                                          : "; borderline: hold out more simulations";
  return item;
}

/// For a report whose items are all trusted.
std::string sentence_of_passed(const std::vector<CheckItem>& items) {
  std::string names;
  for (const CheckItem& item : items) {
    if (item.shows_deviation) names += (names.empty() ? "" : ", ") + item.name;
  }
  return passed_sentence(
      names.empty() ? "all checks passed" : "all checks passed, with small deviations (" + names + ")",
      items);
}

/// Verdict and sentence are those of the worst item.
void decide(CheckReport& report) {
  report.verdict = Verdict::trusted;
  const CheckItem* deciding = nullptr;
  for (const CheckItem& item : report.items) {
    if (!deciding || item.verdict > report.verdict) deciding = &item;
    report.verdict = std::max(report.verdict, item.verdict);
    report.record.set(item.name + ".verdict", verdict_name(item.verdict));
  }
  report.sentence = sentence_of_passed(report.items);
  if (report.verdict != Verdict::trusted) report.sentence = deciding->name + ": " + deciding->sentence;
}

/// One run of the check.
class FullCheck {
 public:
  FullCheck(const CheckedRatio& ratio, const CheckData& data, const FullCheckOptions& options,
            const RunContext& run)
      : ratio_(ratio), data_(data), options_(options), run_(run) {}

  CheckReport run() {
    held_out_ = evaluate_held_out(ratio_.prior, ratio_.posterior, data_.theta, options_.held_out, run_);
    describe_rows();
    const std::size_t n = held_out_.num_rows();
    if (n >= 2) record_information(held_out_, findings_.record);
    if (n >= kLeastRows) {
      test_calibration(held_out_, ratio_.prior.names(), findings_);
      record_bands(held_out_, run_.seed, findings_.record);
      classify();
    }
    if (data_.x_o.rows > 0 && may_go_on()) observe();
    correct(findings_.tests);
    collect_items();
    return report();
  }

 private:
  bool may_go_on() {
    const bool may = !run_.stop_requested() && watch_.seconds() <= run_.time_limit;
    findings_.is_complete = findings_.is_complete && may;
    return may;
  }

  void say(const char* stage) const {
    run_.log.progress({.stage = "checking", .done = 0, .total = 0, .unit = "", .detail = stage});
  }

  void classify() {
    if (!may_go_on()) return;
    say("classifiers");
    test_classifiers(held_out_, ratio_, data_, run_, findings_);
    if (!data_.simulator || !ratio_.is_normalised || !may_go_on()) return;
    say("importance sampling at single thetas");
    test_thetas(held_out_, ratio_, data_, options_.num_thetas, run_, findings_);
  }

  void observe() {
    say("observation");
    test_observation(data_, run_, findings_);
    if ((data_.simulator || data_.simulate) && data_.draws && may_go_on()) {
      draws_item_ = test_predictive(data_, options_.num_predicted, rest_of_time(), findings_);
    }
  }

  RunContext rest_of_time() const {
    RunContext rest = run_;
    rest.time_limit = std::max(0.0, run_.time_limit - watch_.seconds());
    return rest;
  }

  void describe_rows() {
    Record& record = findings_.record;
    findings_.is_complete = held_out_.is_complete;
    double effective = 0.0;
    for (const double draws : held_out_.effective_draws)
      effective += draws / static_cast<double>(held_out_.num_rows());
    record.set("held_out.rows", held_out_.num_rows());
    record.set("held_out.prior_draws", options_.held_out.num_prior_draws);
    record.set("held_out.rows_with_more_draws", held_out_.num_more_draws);
    record.set("held_out.rows_sampled", held_out_.num_sampled);
    record.set("held_out.rows_without_support", held_out_.num_without_support);
    record.set("held_out.mean_effective_draws", effective);
    record.set("held_out.chance_share", held_out_.mean_own_share());
  }

  std::size_t num_tests() const {
    return static_cast<std::size_t>(std::count_if(
        findings_.tests.begin(), findings_.tests.end(),
        [](const CheckTest& test) { return !is_of_observation(test) && !std::isnan(test.p_value); }));
  }

  CheckItem power_item() {
    CheckItem item{"power", Verdict::trusted, ""};
    const std::size_t n = held_out_.num_rows();
    const double share = held_out_.mean_own_share();
    const double level = kLevel / static_cast<double>(std::max<std::size_t>(1, num_tests()));
    const VisibleErrors visible = visible_errors(n, level, std::min(share, 1.0));
    findings_.record.set("power.shift", visible.shift);
    findings_.record.set("power.narrow", visible.narrow);
    item.sentence = check_text(
        "%.0f held-out rows would show, in nine of ten cases, a shift of %.2f posterior sds and a posterior "
        "%.0f %% too "
        "narrow",
        static_cast<double>(n), visible.shift, 100.0 * (1.0 - visible.narrow));
    if (n >= kLeastRows && share <= kMostOwnShare && visible.shift <= kVisibleShift &&
        visible.narrow >= kVisibleNarrow)
      return item;
    item.verdict = Verdict::cannot_tell;
    item.sentence +=
        share > kMostOwnShare
            ? "; posteriors are too narrow for the draws that they were judged by: more num_prior_draws"
            : "; that is too little: hold out more simulations";
    return item;
  }

  CheckItem support_item() const {
    return {"support", Verdict::not_trusted,
            check_text("the ratio of %.0f held-out rows is 0 or not finite at every theta that was tried; ",
                       static_cast<double>(held_out_.num_without_support)) +
                advice::kShape};
  }

  void collect_items() {
    for (const std::string_view name : kCalibrationItems) {
      if (name == "ratio" && !ratio_.is_normalised) continue;
      if (held_out_.num_rows() >= kLeastRows) items_.push_back(item_of(findings_.tests, name));
    }
    items_.push_back(power_item());
    if (held_out_.num_without_support > 0) items_.push_back(support_item());
    for (const std::string_view name : kObservationItems) {
      if (decisive(findings_.tests, name)) items_.push_back(item_of(findings_.tests, name));
    }
    // Of many observations that could not be tested, the first one speaks for all.
    if (!findings_.items.empty()) items_.push_back(findings_.items.front());
    if (data_.has_iid_rows && data_.x_o.rows > 1)
      items_.push_back(iid_item(data_.x_o.rows, held_out_.num_rows(), findings_.record));
    if (draws_item_ &&
        std::ranges::none_of(data_.items, [](const CheckItem& item) { return item.name == "draws"; }))
      items_.push_back(*draws_item_);
    items_.insert(items_.end(), data_.items.begin(), data_.items.end());
    if (!findings_.is_complete)
      items_.push_back(
          {"completeness", Verdict::cannot_tell,
           "the check was cut short; give it more time, or fewer rows by --max-rows or --num-predicted"});
  }

  void record_tests() {
    std::vector<std::string> items, names;
    std::vector<double> p_values, adjusted;
    for (const CheckTest& test : findings_.tests) {
      items.push_back(test.item);
      names.push_back(test.name);
      p_values.push_back(test.p_value);
      adjusted.push_back(test.adjusted);
    }
    findings_.record.set("tests.item", RecordValue(items));
    findings_.record.set("tests.name", RecordValue(names));
    findings_.record.set("tests.p_value", RecordValue(p_values));
    findings_.record.set("tests.corrected_p_value", RecordValue(adjusted));
  }

  CheckReport report() {
    record_tests();
    findings_.record.merge("", data_.record);
    findings_.record.set("complete", findings_.is_complete);
    findings_.record.set("seconds", watch_.seconds());
    CheckReport report;
    report.items = std::move(items_);
    report.record = std::move(findings_.record);
    decide(report);
    return report;
  }

  const CheckedRatio& ratio_;
  const CheckData& data_;
  const FullCheckOptions& options_;
  const RunContext& run_;
  const Stopwatch watch_;
  HeldOutRatios held_out_;
  CheckFindings findings_;
  std::vector<CheckItem> items_;
  std::optional<CheckItem> draws_item_;
};

void check_shapes(const CheckData& data) {
  if (data.theta.rows != data.x.rows)
    throw ShapeError("check: theta has " + std::to_string(data.theta.rows) + " rows but x has " +
                     std::to_string(data.x.rows) + "; both must have one row for each simulation");
  if (data.x_o.rows > 0 && data.x_o.cols != data.x.cols)
    throw ShapeError("check: x_o has " + std::to_string(data.x_o.cols) + " numbers a row but x has " +
                     std::to_string(data.x.cols) + " columns");
  if (data.simulator && data.simulator->dim_x() != data.x.cols)
    throw ShapeError("check: the simulator makes " + std::to_string(data.simulator->dim_x()) +
                     " numbers but x has " + std::to_string(data.x.cols) + " columns");
}

}  // namespace

CheckReport full_check(const CheckedRatio& ratio, const CheckData& data, const FullCheckOptions& options,
                       const RunContext& run) {
  check_shapes(data);
  return FullCheck(ratio, data, options, run).run();
}

CheckedRatio checked_ratio(const RatioEstimator& estimator, MatrixView<const double> x, ThreadPool& pool) {
  return {estimator.prior,
          [posterior = AmortisedPosterior(estimator, pool), x](std::size_t i, const RunContext& context) {
            return posterior.at(x.row(i), context);
          },
          is_normalised(estimator)};
}

CheckReport full_check(const RatioEstimator& estimator, const CheckData& data,
                       const FullCheckOptions& options, const RunContext& run) {
  CheckData with_items = data;
  if (data.x_o.rows > 0) {
    with_items.draws = [&](std::size_t i, std::size_t count, const RunContext& context) {
      const MatrixView<const double> rows = data.has_iid_rows ? data.x_o : data.x_o.middle_rows(i, 1);
      SamplingOptions settings;
      settings.num_samples = static_cast<std::int64_t>(count);
      return sample(Posterior::from_iid_rows(estimator, rows, context), settings, context);
    };
    with_items.items.push_back(range_item(estimator, data.x_o, with_items.record));
  }
  if (const auto item = sharpness_item(estimator, with_items.record)) with_items.items.push_back(*item);
  if (const auto item = failure_item(estimator, PosteriorDraws{}, run, with_items.record))
    with_items.items.push_back(*item);
  return full_check(checked_ratio(estimator, data.x, run.pool), with_items, options, run);
}

}  // namespace nrec
