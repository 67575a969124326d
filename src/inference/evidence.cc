#include "nrec/inference/evidence.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "inference/evidence_of_weights.h"
#include "inference/prior_candidates.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"

namespace nrec {

bool LogEvidence::is_reliable() const { return k_hat <= k_hat_threshold(num_draws); }

LogEvidence evidence_of_weights(const WeightQuality& weights) {
  const double s = static_cast<double>(weights.num_weights);
  LogEvidence evidence;
  evidence.num_draws = weights.num_weights;
  evidence.k_hat = weights.k_hat;
  evidence.log_z = weights.log_sum - std::log(s);
  // Equal weights: rounding may leave the difference below 0.
  evidence.standard_error = std::sqrt(std::max(0.0, (s / weights.ess - 1.0) / (s - 1.0)));
  if (weights.ess == 0) evidence.standard_error = std::nan("");
  return evidence;
}

void add_evidence(Record& record, const LogEvidence& evidence) {
  record.set("log_z", evidence.log_z);
  record.set("log_z_se", evidence.standard_error);
  record.set("log_z_k_hat", evidence.k_hat);
  record.set("log_z_draws", evidence.num_draws);
}

LogEvidence log_evidence(const Posterior& posterior, const RunContext& run, std::size_t num_draws) {
  if (num_draws < 2)
    throw DomainError("evidence: num_draws = " + std::to_string(num_draws) + " must be at least 2");
  std::vector<double> log_ratio;
  while (log_ratio.size() < num_draws && !(run.stop_requested() && log_ratio.size() >= 2)) {
    const std::size_t first = log_ratio.size();
    Matrix<double> theta(std::min(kCandidateBatch, num_draws - first), posterior.prior().dim());
    draw_candidates(posterior.prior(), run, Stream::check, first, theta);
    log_ratio.resize(first + theta.rows());
    posterior.log_ratio(theta, std::span(log_ratio).subspan(first));
  }
  return evidence_of_weights(judge_weights(log_ratio));
}

LogEvidenceRatio log_evidence_ratio(const LogEvidence& first, const LogEvidence& second) {
  return {first.log_z - second.log_z, std::hypot(first.standard_error, second.standard_error),
          first.is_reliable() && second.is_reliable()};
}

void normalised_log_density(const Posterior& posterior, const LogEvidence& evidence,
                            MatrixView<const double> theta, std::span<double> log_density) {
  if (!std::isfinite(evidence.log_z))
    throw DomainError("evidence: log_z = " + number_text(evidence.log_z) +
                      " cannot normalise a density; no prior draw has any: check the observation");
  posterior.log_density(theta, log_density);
  for (double& value : log_density) value -= evidence.log_z;
}

}  // namespace nrec
