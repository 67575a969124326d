#include "diagnostics/observation_tests.h"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>

#include "diagnostics/observed_items.h"
#include "diagnostics/simulated_successes.h"
#include "nrec/core/stop.h"
#include "nrec/diagnostics/observation_checks.h"
#include "nrec/inference/sample.h"

namespace nrec {

namespace {

constexpr std::size_t kLeastRows = 50;  // held out
constexpr std::uint64_t kPredictedRows = 3ull << 61;
constexpr std::size_t kLeastObservations = 20;  // from which on the share of unlikely ones is a test, too
constexpr double kUnlikely = 0.05;

/// One column of the record over the observations, a plain number where there is one.
void record_column(const std::string& name, const std::vector<double>& values, Record& record) {
  if (values.size() == 1) {
    record.set(name, values[0]);
  } else {
    record.set(name, RecordValue(values));
  }
}

/// "x_o", or "row 3 of x_o" where there are several.
std::string row_text(std::size_t row, std::size_t rows) {
  return rows == 1 ? "x_o" : "row " + std::to_string(row) + " of x_o";
}

/// Whether more observations than one in 20 have a p-value below 0.05: a p-value of so many has no floor as those of single ones
/// have. Rows of one data set depend on each other through their parameters.
void test_share(const std::string& item, const std::string& what, std::span<const double> p_values,
                const char* advice, CheckFindings& findings) {
  const auto n =
      p_values.size() - static_cast<std::size_t>(std::count_if(p_values.begin(), p_values.end(),
                                                               [](double p) { return std::isnan(p); }));
  if (n < kLeastObservations) return;
  const auto unlikely =
      std::count_if(p_values.begin(), p_values.end(), [](double p) { return p < kUnlikely; });
  const double count = static_cast<double>(unlikely), all = static_cast<double>(n);
  const double p = unlikely == 0 ? 1.0 : boost::math::ibeta(count, all - count + 1.0, kUnlikely);
  findings.record.set(item + ".unlikely", static_cast<std::size_t>(unlikely));
  findings.tests.push_back({item, "share of unlikely observations", p, count > 2.0 * kUnlikely * all, true,
                            check_text("%.0f of %.0f observations ", count, all) + what +
                                check_text(" with p below %.2g", kUnlikely),
                            advice});
}

}  // namespace

void test_observation(const CheckData& data, const RunContext& run, CheckFindings& findings) {
  if (data.x.rows < kLeastRows) return;
  const ObservationDistances distances(data.x, run.pool);
  std::vector<double> distance, median_distance, p_values;
  std::size_t num_rows = 0;
  for (std::size_t i = 0; i < data.x_o.rows; ++i) {
    if (run.stop_requested()) {
      findings.is_complete = false;
      break;
    }
    const ObservationDistance found = distances.at(data.x_o.row(i));
    const std::string row = row_text(i, data.x_o.rows);
    num_rows = found.num_rows;
    distance.push_back(found.distance);
    median_distance.push_back(found.median_distance);
    p_values.push_back(found.p_value);
    findings.tests.push_back(
        {"observation", "distance of " + row, found.p_value, found.distance > 2.0 * found.median_distance,
         true,
         row + check_text(" is %.3g from its nearest simulations, which are %.3g from theirs (p = %.2g)",
                          found.distance, found.median_distance, found.p_value),
         advice::kFar});
  }
  record_column("observation.distance", distance, findings.record);
  record_column("observation.median_distance", median_distance, findings.record);
  record_column("observation.p_value", p_values, findings.record);
  findings.record.set("observation.rows", num_rows);
  if (!data.has_iid_rows)
    test_share("observation", "are far from the simulations", p_values, advice::kFar, findings);
}

namespace {

/// What the predictive check of all observations collects.
class Predictive {
 public:
  Predictive(const CheckData& data, CheckFindings& findings) : data_(data), findings_(findings) {}

  void compare(std::size_t i, MatrixView<const double> predicted) {
    num_rows_.push_back(static_cast<double>(predicted.rows));
    if (data_.has_iid_rows && data_.x_o.rows > 1) {
      compare_distributions(predicted);
    } else {
      compare_row(i, predicted);
    }
  }

  /// Of an observation that nothing, or too little, could be simulated for: lists go on over all of them.
  void leave_out(std::size_t i, std::size_t num_draws, std::size_t num_predicted) {
    if (num_draws > 0 && num_draws < kLeastPredicted)
      findings_.items.push_back(
          {"predictive", Verdict::cannot_tell,
           check_text("there are %.0f draws at ", static_cast<double>(num_draws)) +
               row_text(i, data_.x_o.rows) +
               check_text(", too few to hold it against what is simulated there (%.0f are needed); draw more",
                          static_cast<double>(kLeastPredicted))});
    if (num_draws >= kLeastPredicted)
      findings_.items.push_back(
          {"predictive", Verdict::cannot_tell,
           check_text("%.0f of %.0f simulations at the posterior of ", static_cast<double>(num_predicted),
                      static_cast<double>(num_draws)) +
               row_text(i, data_.x_o.rows) +
               check_text(
                   " succeeded, too few to hold it against them (%.0f are needed); see why the simulator "
                   "fails there, or simulate more of them",
                   static_cast<double>(kLeastPredicted))});
    num_rows_.push_back(0.0);
    below_.insert(below_.end(), data_.x_o.cols, std::nan(""));
    tail_.insert(tail_.end(), data_.x_o.cols, std::nan(""));
    p_values_.push_back(std::nan(""));
    if (!data_.has_iid_rows) joint_p_values_.push_back(std::nan(""));
  }

  void write() {
    if (std::ranges::all_of(p_values_, [](double p) { return std::isnan(p); })) return;
    Record& record = findings_.record;
    record_column("predictive.rows", num_rows_, record);
    if (!below_.empty()) record.set("predictive.below", RecordValue(below_));
    if (!tail_.empty()) record.set("predictive.tail", RecordValue(tail_));
    if (!ks_.empty()) record.set("predictive.ks", RecordValue(ks_));
    record_column("predictive.p_value", p_values_, record);
    if (!joint_p_values_.empty()) record_column("predictive.joint_p_value", joint_p_values_, record);
    test_share("predictive", "are not like data simulated at their posteriors", p_values_,
               advice::kPredictive, findings_);
  }

 private:
  void compare_row(std::size_t i, MatrixView<const double> predicted) {
    const PredictiveCheck found = predictive_check(data_.x_o.row(i), predicted);
    below_.insert(below_.end(), found.below.begin(), found.below.end());
    tail_.insert(tail_.end(), found.tail.begin(), found.tail.end());
    p_values_.push_back(found.p_value);
    joint_p_values_.push_back(found.joint_p_value);
    const std::size_t column = found.worst_column;
    const std::string at = data_.x_o.rows == 1 ? "" : std::to_string(i) + ", ";
    const bool is_joint = found.joint_p_value < found.column_p_value;
    findings_.tests.push_back(
        {"predictive", row_text(i, data_.x_o.rows) + " among simulations at its posterior", found.p_value,
         true, true,
         is_joint
             ? row_text(i, data_.x_o.rows) +
                   check_text(
                       " as a whole, not one number of it alone, is unlike the data simulated at posterior "
                       "draws (Mahalanobis distance %.3g, theirs %.3g in the median; p = %.2g)",
                       found.joint_distance, found.joint_median, found.joint_p_value)
             : "x_o[" + at + std::to_string(column) + "] lies " +
                   check_text(
                       "above %.1f %% of the data simulated at posterior draws (tail probability %.2g)",
                       100.0 * found.below[column], found.tail[column]),
         advice::kPredictive});
  }

  void compare_distributions(MatrixView<const double> predicted) {
    const PredictiveRowsCheck found = predictive_check_of_rows(data_.x_o, predicted);
    ks_ = found.ks;
    p_values_.push_back(found.p_value);
    const std::size_t column = found.worst_column;
    findings_.tests.push_back(
        {"predictive", "rows of x_o among simulations at their posterior", found.p_value, true, true,
         "column " + std::to_string(column) +
             check_text(" of x_o is distributed otherwise than data simulated at posterior draws (largest "
                        "difference of the distribution functions %.2f)",
                        found.ks[column]),
         advice::kPredictive});
  }

  const CheckData& data_;
  CheckFindings& findings_;
  std::vector<double> num_rows_, below_, tail_, ks_, p_values_, joint_p_values_;
};

}  // namespace

CheckItem test_predictive(const CheckData& data, std::size_t num_predicted, const RunContext& run,
                          CheckFindings& findings) {
  const Stopwatch watch;
  const std::size_t count = data.num_observations();
  const DataMaker simulate =
      data.simulate
          ? data.simulate
          : [&](MatrixView<const double> theta, std::uint64_t first_row, const RunContext& context) {
              return simulated_successes(*data.simulator, theta, first_row, context);
            };
  Predictive predictive(data, findings);
  std::vector<PosteriorDraws> all;
  for (std::size_t i = 0; i < count; ++i) {
    RunContext rest = run;
    rest.time_limit = std::max(0.0, run.time_limit - watch.seconds());
    if (i > 0 && (run.stop_requested() || rest.time_limit == 0.0)) {
      findings.is_complete = false;
      predictive.leave_out(i, 0, 0);
      continue;
    }
    if (count > 1)
      run.log.progress({.stage = "checking",
                        .done = static_cast<double>(i),
                        .total = static_cast<double>(count),
                        .unit = "observation",
                        .detail = ""});
    all.push_back(data.draws(i, num_predicted, rest));
    const std::size_t num_draws = all.back().size();
    Matrix<double> predicted;
    if (num_draws >= kLeastPredicted)
      predicted = simulate(all.back().theta, kPredictedRows + i * num_predicted, rest);
    const bool is_cut = num_draws >= kLeastPredicted && predicted.rows() < num_draws &&
                        (run.stop_requested() || watch.seconds() > run.time_limit);
    findings.is_complete = findings.is_complete && !is_cut;
    if (predicted.rows() >= kLeastPredicted) {
      predictive.compare(i, predicted);
    } else {
      predictive.leave_out(i, is_cut ? 0 : num_draws, predicted.rows());
    }
  }
  predictive.write();
  return draws_item(all, findings.record, count);
}

}  // namespace nrec
