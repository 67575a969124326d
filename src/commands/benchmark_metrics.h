#pragma once

#include <limits>
#include <string>
#include <vector>

#include "commands/benchmark_references.h"
#include "nrec/inference/posterior_draws.h"
#include "nrec/training/ratio_estimator.h"

namespace nrec {

/// What the draws for one observation are worth; nan where it could not be measured.
struct ObservationMetrics {
  double c2st = std::numeric_limits<double>::quiet_NaN();
  double c2st_auc = c2st;
  double mmd2 = c2st;
  double posterior_mean_error = c2st, posterior_variance_ratio = c2st;
  double mean_error = c2st, sd_error = c2st;  // absolute, in reference sds
  double gaussian_kl = c2st;
  double median_distance = c2st;
  double nltp = c2st;            // minus log of the normalised estimated density at the true parameters
  double reference_nltp = c2st;  // the same of the exact posterior
  double log_z = c2st, log_z_se = c2st,
         log_z_k_hat = c2st;  // of the evidence that normalises the estimated density
  std::string problem;        // what could not be measured, and why
};

/// Measures draws against the reference posterior of observation `index` of a task. Both sets are brought to one size, by
/// taking draws at equal distances and the first reference rows. Returns early at a stop.
ObservationMetrics measure(const BenchmarkTask& task, std::size_t index, const PosteriorDraws& draws,
                           const RatioEstimator& estimator, const RunContext& run);

/// One list per metric, one entry per observation, and means over them.
void add_metrics(Record& record, const std::vector<ObservationMetrics>& metrics);

}  // namespace nrec
