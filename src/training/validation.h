#pragma once

#include <optional>
#include <vector>

#include "nrec/core/run_context.h"
#include "nrec/networks/pair_step.h"
#include "nrec/priors/prior.h"
#include "training/information.h"
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
  /// Everything of an EpochRecord but training_loss; without `information` the numbers on Z(x) are nan. Evaluation mode; every
  /// validation row counts.
  EpochRecord measure(PairNetworkStep& step, const PairNetwork& network, bool information);

 private:
  Validation(const TrainingData& data, Matrix<float> theta, std::uint64_t seed);
  /// The numbers on Z(x) from the logits of the loss.
  void add_information_of_loss(EpochRecord& record) const;

  const ContrastiveLoss& loss_;
  Matrix<float> theta_, x_;  // row b of theta belongs to row b of x; contrastive thetas may follow
  Matrix<std::uint32_t> candidates_;
  Matrix<float> logits_;
  std::optional<InformationSet> information_;  // empty: from the logits of the loss
  std::vector<float> own_logits_;              // for information_
};

}  // namespace nrec
