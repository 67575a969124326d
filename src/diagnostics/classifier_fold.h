#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/random.h"
#include "nrec/kernels/small_mlp.h"

namespace nrec {

/// One fold of classifier_check(): trains on some row pairs, scores others. Features [2 n, F] hold the ones and behind them
/// the zeros; row pairs are numbered 0 .. n - 1. What it is given must outlive it.
class ClassifierFold {
 public:
  ClassifierFold(MatrixView<const float> features, std::span<const std::uint8_t> labels,
                 std::span<const double> weights, std::vector<std::uint32_t> train_pairs,
                 RandomStream random);

  /// Trains to the end and keeps the weights of the best epoch on the pairs held back.
  void train();
  /// Probability of label 1. Shapes   rows of the features [S]; returns [S]
  std::vector<float> score(std::span<const std::uint32_t> rows);

 private:
  void initialise_weights();
  void epoch();
  double held_back_loss();
  std::uint32_t zero_of(std::uint32_t pair) const {
    return static_cast<std::uint32_t>(weights_.size()) + pair;
  }

  MatrixView<const float> features_;
  std::span<const std::uint8_t> labels_;
  std::span<const double> weights_;
  std::vector<std::uint32_t> train_pairs_, held_back_pairs_;
  std::vector<std::uint32_t> rows_;  // of the present epoch
  RandomStream random_;
  SmallMlp network_;
};

}  // namespace nrec
