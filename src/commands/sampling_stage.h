#pragma once

#include <string>

#include "commands/inputs.h"
#include "commands/predictive_rows.h"
#include "nrec/commands/infer.h"

namespace nrec {

/// The second half of infer and sample: draws from the posterior or posteriors of an observation, looks for modes, checks,
/// writes all, and fills status, message, marginals and check of the result. Held-out rows may be none.
struct SamplingStage {
  const RatioEstimator& estimator;
  const std::string& estimator_hash;  // in the key under which draws are taken over
  const Observation& observation;
  const SamplingOptions& sampling;
  const CheckOptions& check;
  MatrixView<const double> held_out_theta, held_out_x;
  const OutputFolder& folder;
  bool resume = false;
  const Simulator* simulator = nullptr;  // for the full check; null: none
  PredictiveRows* predictive = nullptr;  // the same with the user's own

  void run(const RunContext& context, CommandResult& result) const;
};

}  // namespace nrec
