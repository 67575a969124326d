#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nrec/core/array.h"
#include "nrec/core/run_context.h"
#include "nrec/networks/pair_network.h"
#include "nrec/priors/prior.h"
#include "nrec/simulation/simulation_set.h"
#include "nrec/training/standardiser.h"

namespace nrec {

/// What a success model rests on.
enum class SuccessKind {
  network,    // a network that predicts held-out rows better than a constant rate
  no_better,  // a constant rate: the network was not better, so failures do not visibly depend on theta
  too_few,    // a constant rate: too few failures or successes to learn from
};
/// "network", "no better", "too few".
std::string_view success_kind_name(SuccessKind kind);
/// Inverse of success_kind_name. Errors: ConfigError.
SuccessKind success_kind(std::string_view name);

/// How P(ok | theta) does on the held-out rows. All 0 for SuccessKind::too_few.
struct SuccessCalibration {
  std::size_t num_rows = 0;
  double mean_predicted = 0.0;  // mean of P(ok | theta)
  double observed_rate = 0.0;   // share of ok rows
  double mean_variance = 0.0;   // mean of P (1 - P)
  double brier_score = 0.0;     // mean of (P - ok)^2
  double constant_brier_score = 0.0;
  double log_score = 0.0;  // mean log probability of what happened, nats
  double constant_log_score = 0.0;
  double gain = 0.0, gain_se = 0.0;  // log_score - constant_log_score and its standard error over rows

  /// (mean_predicted - observed_rate) in standard errors.
  double z_score() const;
  bool operator==(const SuccessCalibration&) const = default;
};

/// log P(ok | theta), the chance that a simulation at theta does not fail, learnt from the statuses of all rows.
///
///   log P(ok | theta) = -log(1 + exp(-h(u))),   u = standardised unbounded theta
///
/// h is a residual network (2 blocks of 50, layer norm), trained by binary cross-entropy. Where only a constant rate is
/// known P(ok | theta) = rate(), which drops out of the posterior.
/// Source   docs/methods/failures.md
struct SuccessModel {
  SuccessKind kind = SuccessKind::too_few;
  std::size_t num_ok = 0, num_failed = 0;  // rows that it was learnt from
  std::optional<PairNetwork> network;      // with dim_x = 1 and x = 0; SuccessKind::network only
  Standardiser theta_standardiser;  // of all rows in the prior's unbounded space; SuccessKind::network only
  SuccessCalibration calibration;

  /// Share of ok rows: an estimate of P(ok) when theta comes from the prior.
  double rate() const { return static_cast<double>(num_ok) / static_cast<double>(num_ok + num_failed); }
  /// One sentence with the numbers, for messages and checks.
  std::string sentence() const;
};

/// Evaluates log P(ok | theta) at many thetas.
class SuccessEvaluator {
 public:
  /// Copies what it needs; the pool of `run` must outlive it.
  SuccessEvaluator(const SuccessModel& model, const Prior& prior, const RunContext& run);
  ~SuccessEvaluator();
  SuccessEvaluator(SuccessEvaluator&&) noexcept;

  /// Shapes   theta [n, D] in; log_p [n] out, <= 0
  /// Errors   ShapeError
  /// Cost     O(n (50 D + 10,000)); threads of the pool; not to be called from two threads at once
  void operator()(MatrixView<const double> theta, std::span<double> log_p) const;

  /// The same values and their gradients with respect to u = prior.to_unbounded(theta); 0 where the rate is constant.
  ///
  ///   d log_p / d u_j = (1 - P(ok | theta)) d h / d u_j
  ///
  /// Shapes   theta [n, D] in; log_p [n] out, the bits of operator(); d_u [n, D] out
  /// Errors   ShapeError
  /// Cost     twice that of operator()
  void with_gradient(MatrixView<const double> theta, std::span<double> log_p, MatrixView<double> d_u) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Learns a success model from a set that without_failures() has applied the rule `model` to; train() does this by
/// itself. Every random choice is a pure function of the seed: equal bits for any number of threads. Ends early at a
/// stop or the time limit of `run`, with the best state so far.
///
/// Errors   ShapeError: theta has another number of columns than the prior; DomainError: no failed rows, no successes,
///          theta not finite or outside the prior's support
/// Source   docs/methods/failures.md
SuccessModel learn_success(const Prior& prior, const SimulationSet& simulations, const RunContext& run);

}  // namespace nrec
