#pragma once

#include "nrec/networks/pair_step.h"
#include "training/training_data.h"

namespace nrec {

/// The validation rows with contrastive sets that are fixed for the whole run, and their measures.
class Validation {
 public:
  Validation(const TrainingData& data, std::uint64_t seed);
  /// Everything of an EpochRecord but training_loss. Evaluation mode; every validation row counts.
  EpochRecord measure(PairNetworkStep& step, const PairNetwork& network);

 private:
  const ContrastiveLoss& loss_;
  Matrix<float> theta_, x_;
  Matrix<std::uint32_t> candidates_;
  Matrix<float> logits_;
};

}  // namespace nrec
