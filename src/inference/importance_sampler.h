#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inference/pareto_smoothing.h"
#include "inference/resampling.h"
#include "nrec/core/stop.h"
#include "nrec/inference/sample.h"

namespace nrec {

/// Importance resampling from the prior: sample_by_importance(), for candidates that are partly evaluated already.
/// All arguments must outlive it.
class ImportanceSampler {
 public:
  ImportanceSampler(const Posterior& posterior, const SamplingOptions& options, const RunContext& run);

  /// Takes over the log ratios of candidates 0, 1, ... of draw_candidates(), which cost `evaluations` and `seconds` to
  /// get. Before draw().
  void take_over(std::vector<double> log_ratios, std::int64_t evaluations, double seconds);
  PosteriorDraws draw();
  /// What was spent, taken over or not.
  std::int64_t evaluations() const { return evaluations_; }
  double seconds() const { return seconds_before_ + watch_.seconds(); }

  /// How many candidates there must be in all for the draws asked for, as far as those at hand can tell; nothing when
  /// their weights are not reliable or the answer is more than `most` candidates.
  std::optional<std::size_t> candidates_needed(std::size_t most) const;

 private:
  struct Look;  // at the weights so far

  bool is_usable(const Look& now) const;
  bool has_no_support(const Look& now) const;
  bool is_spent() const;
  void next_batch();
  void report(std::size_t goal);
  PosteriorDraws result(SamplingStatus status, const Look& now) const;
  std::string message(SamplingStatus status, const Copies& copies, const Look& now) const;

  const Posterior& posterior_;
  const SamplingOptions& options_;
  const RunContext& run_;
  std::size_t wanted_;
  std::size_t non_finite_before_;
  Stopwatch watch_;
  double seconds_before_ = 0.0;
  double last_update_ = 0.0;
  std::int64_t evaluations_ = 0;
  std::vector<double> log_ratio_;  // of candidates 0, 1, ...: their thetas are drawn again when needed
};

}  // namespace nrec
