#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/mt19937_stream.h"
#include "nrec/core/array.h"
#include "nrec/diagnostics/c2st.h"
#include "nrec/kernels/small_mlp.h"

namespace nrec {

/// Training and scoring of one cross-validation fold, an epoch at a time. The features and labels it is given
/// must outlive it.
class C2stFold {
 public:
  C2stFold(MatrixView<const float> features, std::span<const std::uint8_t> labels,
           std::vector<std::uint32_t> train_rows, std::vector<std::uint32_t> test_rows,
           const C2stOptions& options);

  /// One pass over the training rows in a new order. No allocation, unless loss curves are kept.
  void advance_epoch();

  /// Gives a fold whose training has not ended the status `stopped`.
  void stop_if_unfinished() {
    if (!is_finished_) status_ = C2stFoldStatus::stopped;
  }

  bool is_finished() const { return is_finished_; }
  int epochs() const { return epochs_; }
  double loss() const { return loss_; }
  C2stFoldStatus status() const { return status_; }
  const std::vector<double>& loss_curve() const { return loss_curve_; }

  struct Score {
    double accuracy;
    double auc;
  };
  /// Scores the test rows with the present weights.
  Score score();

 private:
  void initialise_weights();
  void shuffle_order();
  void judge(double loss);
  void hold_out_validation_rows();
  void judge_by_validation();

  MatrixView<const float> features_;
  std::span<const std::uint8_t> labels_;
  std::vector<std::uint32_t> order_;      // training rows, in the order of the present epoch
  std::vector<std::uint32_t> shuffle_;    // scratch of shuffle_order
  std::vector<std::uint32_t> old_order_;  // scratch of shuffle_order
  std::vector<std::uint32_t> test_rows_;
  // Regularised only: rows that judge the epochs, and the best weights by their loss.
  std::vector<std::uint32_t> validation_rows_;
  std::vector<float> best_parameters_, validation_probabilities_;
  double best_validation_loss_ = std::numeric_limits<double>::infinity();
  int epochs_without_better_ = 0;
  std::size_t batch_rows_;
  int max_iterations_;
  bool keep_loss_curve_;

  Mt19937Stream random_;
  SmallMlp network_;
  int epochs_ = 0;
  int flat_epochs_ = 0;  // epochs in a row without enough progress
  double loss_ = std::numeric_limits<double>::infinity();
  double best_loss_ = std::numeric_limits<double>::infinity();
  bool is_finished_ = false;
  C2stFoldStatus status_ = C2stFoldStatus::epoch_limit;
  std::vector<double> loss_curve_;
};

/// Area under the ROC curve: probability that a row of label 1 has the higher probability, ties counting one
/// half. nan when a label is missing.
double roc_auc(std::span<const float> probabilities, std::span<const std::uint8_t> labels);

}  // namespace nrec
