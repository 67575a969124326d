#pragma once

#include "nrec/core/run_context.h"
#include "nrec/networks/pair_step.h"
#include "nrec/priors/prior.h"
#include "training/training_data.h"

namespace nrec {

/// Thetas that a validation on draws from the prior holds at most.
inline constexpr std::size_t kMostThetas = 65536;

/// The validation rows with contrastive sets that are fixed for the whole run, and their measures.
class Validation {
 public:
  /// Contrastive thetas are those of the other validation rows, and of the training rows where these are too few.
  Validation(const TrainingData& data, std::uint64_t seed);
  /// Contrastive thetas are drawn from the prior: at most kMostThetas, which rows then share.
  Validation(const Prior& prior, const TrainingData& data, const RunContext& run);
  /// Everything of an EpochRecord but training_loss. Evaluation mode; every validation row counts.
  EpochRecord measure(PairNetworkStep& step, const PairNetwork& network);

 private:
  const ContrastiveLoss& loss_;
  Matrix<float> theta_, x_;
  Matrix<std::uint32_t> candidates_;
  Matrix<float> logits_;
};

}  // namespace nrec
