#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/losses/contrastive_loss.h"
#include "nrec/training/train.h"

namespace nrec {

/// Simulations as the network sees them: checked, split, standardised, in float32.
struct TrainingData {
  explicit TrainingData(const ContrastiveLoss& loss_) : loss(loss_) {}

  ContrastiveLoss loss;
  Matrix<float> theta, x;               // all rows
  std::vector<std::uint32_t> training;  // row numbers, in the random order of the split
  std::vector<std::uint32_t> validation;
  std::size_t batch_size = 0;
  std::size_t information_thetas = 0;  // 0: those of the loss
  Standardiser theta_standardiser, x_standardiser;
  std::vector<double> x_low, x_high;
  std::vector<std::string> warnings;
};

/// `simulator` makes the first mini-batch where regime "joint" standardises from it; else it may be null. Errors as train().
TrainingData prepare_training_data(const Prior& prior, const SimulationSet& simulations,
                                   const TrainingOptions& options, const RunContext& run,
                                   const Simulator* simulator = nullptr);

}  // namespace nrec
