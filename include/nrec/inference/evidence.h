#pragma once

#include <cstddef>
#include <span>

#include "nrec/core/array.h"
#include "nrec/core/run_context.h"
#include "nrec/inference/posterior.h"

namespace nrec {

/// Log of the mean ratio under the prior, with its error.
struct LogEvidence {
  double log_z = 0.0;           // nats
  double standard_error = 0.0;  // of log_z
  double k_hat = 0.0;           // of the weights' tail; see is_reliable
  std::size_t num_draws = 0;    // from the prior

  /// Whether k_hat is at most min(1 - 1 / log10(num_draws), 0.7): above, neither log_z nor its error can be relied on.
  bool is_reliable() const;
};

/// Prior draws that log_evidence() takes where nothing else is said.
inline constexpr std::size_t kEvidenceDraws = 20000;

/// Evidence of the observation by importance sampling from the prior; a Pareto fit judges the weights.
///
///   log Z = log mean of r(theta_i),   standard error = sqrt((S sum w_i^2 - 1) / (S - 1)),  sum w_i = 1  (delta method)
///
/// Z is p(x_o) for a likelihood, 1 for an exact likelihood-to-evidence ratio, and the factor that normalises an estimated
/// one. For a posterior with fixed parameters (Posterior::conditioned) it is p(x_o | fixed) / p(x_o).
///
/// Numerics the prior draws are those of (run.seed, Stream::check); log_z is minus infinity, its error nan and k_hat infinite
///          where no draw has density
/// Errors   DomainError: num_draws < 2
/// Cost     num_draws evaluations in blocks of 65,536; memory 8 bytes a draw. A stop request ends it early with the draws so far
/// Source   [Vehtari2024]; docs/methods/sampling.md
LogEvidence log_evidence(const Posterior& posterior, const RunContext& run,
                         std::size_t num_draws = kEvidenceDraws);

/// A difference of two log evidences.
struct LogEvidenceRatio {
  double value = 0.0;  // log Z(first) - log Z(second), nats
  double standard_error =
      0.0;  // of independent errors; for two posteriors with the same prior and seed it is rather too large
  bool is_reliable = false;  // both of them are
};

/// Log evidence of `first` relative to `second`.
///
/// It is a log Bayes factor where both share one estimator and one observation and differ in the prior or in fixed
/// parameters, because the unknown p(x_o) of the ratio cancels; or where both log ratios are log likelihoods. Ratios of
/// estimators that were trained on different models have lost their p(x_o): their difference is no Bayes factor.
LogEvidenceRatio log_evidence_ratio(const LogEvidence& first, const LogEvidence& second);

/// Normalised log posterior density: log ratio + log prior - log Z; minus infinity outside the support.
///
/// Shapes   theta [n, D] in; log_density [n] out
/// Errors   ShapeError; DomainError: log_z is not finite; UnsupportedError: a prior given by samples
void normalised_log_density(const Posterior& posterior, const LogEvidence& evidence,
                            MatrixView<const double> theta, std::span<double> log_density);

}  // namespace nrec
