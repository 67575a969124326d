#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "nrec/core/stop.h"
#include "nrec/inference/sample.h"

namespace nrec {

/// Rejection from the prior that can stop after some evaluations and go on later: sample_by_rejection() in two parts.
/// All arguments must outlive it.
class RejectionSampler {
 public:
  RejectionSampler(const Posterior& posterior, const SamplingOptions& options, const RunContext& run);

  /// Goes on until the draws are complete, `max_evaluations` are spent since the start, or the options' budget is.
  SamplingStatus advance(std::int64_t max_evaluations);
  /// The draws so far.
  PosteriorDraws result(SamplingStatus status) const;

  /// Whether the options' budget is spent.
  bool is_spent() const;
  std::size_t num_accepted() const { return accepted_.size(); }
  std::int64_t evaluations() const { return evaluations_; }
  double acceptance_rate() const;
  double seconds() const { return watch_.seconds(); }
  /// Whether log ratios of the candidates that follow are kept, for take_log_ratios().
  void keep_log_ratios(bool keep) { keep_log_ratios_ = keep; }
  /// Log ratios of candidates 0, 1, ... so far; none are kept from here on.
  std::vector<double> take_log_ratios();

 private:
  /// A candidate that the present bound accepts. It stays accepted while score > bound.
  struct Accepted {
    double score;  // log r - log U
    double log_ratio;
    std::vector<double> theta;
  };

  bool pilot();
  void search(const Matrix<double>& theta, const std::vector<double>& log_ratio);
  void evaluate(const Matrix<double>& theta, std::vector<double>& log_ratio);
  void raise_bound(double log_ratio);
  void next_batch(std::int64_t max_evaluations);
  double seconds_left() const;
  void report();
  std::string message(SamplingStatus status, std::size_t n) const;

  const Posterior& posterior_;
  const SamplingOptions& options_;
  const RunContext& run_;
  std::size_t wanted_;
  Stopwatch watch_;
  double last_update_ = 0.0;
  std::int64_t evaluations_ = 0;
  bool has_pilot_ = false;
  bool any_finite_ = false;
  double largest_ = -std::numeric_limits<double>::infinity();
  double bound_ = -std::numeric_limits<double>::infinity();
  std::uint64_t next_row_ = 0;
  std::vector<Accepted> accepted_;
  Matrix<double> theta_;
  std::vector<double> log_ratio_;
  bool keep_log_ratios_ = false;
  std::vector<double> log_ratios_;
};

}  // namespace nrec
