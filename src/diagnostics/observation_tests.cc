#include "diagnostics/observation_tests.h"

#include <algorithm>
#include <cmath>

#include "diagnostics/observed_items.h"
#include "diagnostics/simulated_successes.h"
#include "nrec/diagnostics/observation_checks.h"
#include "nrec/inference/sample.h"

namespace nrec {

namespace {

constexpr std::size_t kLeastRows = 50;  // held-out rows, or successful simulations at the posterior
constexpr std::uint64_t kPredictedRows = 3ull << 61;

}  // namespace

void test_observation(const CheckData& data, const RunContext& run, CheckFindings& findings) {
  if (data.x.rows < kLeastRows) return;
  const ObservationDistance found = observation_distance(data.x_o, data.x, run.pool);
  findings.record.set("observation.distance", found.distance);
  findings.record.set("observation.median_distance", found.median_distance);
  findings.record.set("observation.p_value", found.p_value);
  findings.record.set("observation.rows", found.num_rows);
  const bool is_large = found.distance > 2.0 * found.median_distance;
  findings.tests.push_back(
      {"observation", "distance of x_o", found.p_value, is_large, true,
       check_text("x_o is %.3g from its nearest simulations, which are %.3g from theirs (p = %.2g)",
                  found.distance, found.median_distance, found.p_value),
       advice::kFar});
}

CheckItem test_predictive(const CheckData& data, std::size_t num_predicted, const RunContext& run,
                          CheckFindings& findings) {
  SamplingOptions options;
  options.num_samples = static_cast<std::int64_t>(num_predicted);
  const PosteriorDraws draws = sample(*data.at_observation, options, run);
  const CheckItem item = draws_item({&draws, 1}, findings.record);
  if (draws.size() < kLeastRows) return item;
  const Matrix<double> predicted = simulated_successes(*data.simulator, draws.theta, kPredictedRows, run);
  if (predicted.rows() < kLeastRows) return item;
  const PredictiveCheck found = predictive_check(data.x_o, predicted);
  findings.record.set("predictive.rows", found.num_rows);
  findings.record.set("predictive.below", RecordValue(found.below));
  findings.record.set("predictive.tail", RecordValue(found.tail));
  findings.record.set("predictive.p_value", found.p_value);
  const std::size_t column = found.worst_column;
  findings.tests.push_back(
      {"predictive", "x_o among simulations at its posterior", found.p_value, true, true,
       "x_o[" + std::to_string(column) + "] lies " +
           check_text("above %.1f %% of the data simulated at posterior draws (tail probability %.2g)",
                      100.0 * found.below[column], found.tail[column]),
       advice::kPredictive});
  return item;
}

}  // namespace nrec
