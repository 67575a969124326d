#pragma once

#include <cstdint>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/log_sink.h"
#include "nrec/core/stop.h"
#include "nrec/core/thread_pool.h"
#include "nrec/kernels/small_mlp.h"

namespace nrec {

/// How the classifier two-sample test is run.
struct C2stOptions {
  bool z_score = true;         // scale both sets by mean and sd (n - 1) of the reference, per column
  std::uint32_t seed = 1;      // of the folds and of every fold's network
  int num_folds = 5;           // >= 2
  int max_iterations = 10000;  // >= 1: epochs per fold
  /// Not the published recipe: a tenth of a fold's training rows judges its epochs, the best one counts, and training ends
  /// after 10 epochs without a better one. Such scores come near the best possible accuracy in 5 and more columns, where the
  /// published recipe reads low; the two must not be compared with each other.
  bool regularised = false;
  bool keep_loss_curves = false;  // fill C2stSummary::loss_curves
  SmallMlpTarget target = SmallMlpTarget::best;
  const StopRequest* stop = nullptr;  // ends the training within an epoch; the scores are then worth nothing

  /// Errors: ConfigError with every broken rule.
  void validate() const;
};

/// How the training of one fold ended.
enum class C2stFoldStatus {
  converged,    // the training loss stopped falling
  epoch_limit,  // max_iterations reached; the score is that of the last weights
  diverged,     // the loss is not finite; the fold's scores are nan
  stopped,      // on request; the fold's scores are nan
};

/// What the classifier two-sample test found.
struct C2stSummary {
  double accuracy = 0.0;  // mean of fold_accuracy; probability in [0, 1], `chance` = indistinguishable
  double auc = 0.0;       // mean of fold_auc; 0.5 = indistinguishable
  double chance = 0.5;    // accuracy of always naming the larger set: max(n, m) / (n + m)
  std::vector<double> fold_accuracy;
  std::vector<double> fold_auc;    // area under the ROC curve; nan where a test fold holds one set only
  std::vector<int> epochs;         // per fold
  std::vector<double> final_loss;  // training loss of the last epoch, per fold [nats]
  std::vector<C2stFoldStatus> fold_status;
  std::vector<std::vector<double>> loss_curves;  // [fold][epoch] if asked for

  bool all_converged() const;
};

/// Classifier two-sample test: how well a small network tells samples from reference on held-out rows.
///
///   accuracy = mean over folds of the fraction of test rows whose set is named correctly
///   network  d -> 10 d -> 10 d -> 1 (ReLU, logistic), Adam, mini-batches of 200, until the training loss
///   stops falling
///
/// The recipe is that of the published benchmark (an sklearn MLPClassifier in 5-fold cross validation), step
/// by step, with its over-training: in 5 and more columns the score reads low.
/// docs/methods/two_sample_metrics.md has every step and figures.
///
/// Shapes   reference [n, d], samples [m, d]
/// Errors   ShapeError: different or no columns, fewer rows than folds; DomainError: a value that is not
/// finite (row and column
///          named) or too large for float32, a column that is constant in reference but not in samples while
///          z_score is on; ConfigError: options; UnsupportedError: target. A column constant and equal in
///          both sets says nothing: it is left unscaled, with a warning.
/// Numerics float32 training; the same bits for any number of threads (one target); rounding makes long runs
/// part from other
///          implementations by about 0.003
/// Cost     folds run side by side on the pool, an epoch at a time; memory about num_folds 2000 d^2 + 4 (n +
/// m) d bytes;
///          time O(epochs (n + m) d^2): 20 000 rows, d = 10: 2500 epochs of 13 ms in all. Not reentrant for
///          one pool.
/// Source   [LopezPaz2017], [Lueckmann2021, appendix]
C2stSummary c2st(MatrixView<const double> reference, MatrixView<const double> samples,
                 const C2stOptions& options, ThreadPool& pool, LogSink& log);

}  // namespace nrec
