#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/record.h"
#include "nrec/networks/pair_network.h"
#include "nrec/priors/prior.h"
#include "nrec/training/standardiser.h"
#include "nrec/training/success_model.h"

namespace nrec {

/// What one epoch of training measured, over validation rows. Losses and information in nats. h is the output of the network for a
/// row and its own theta, h_k that for the row and one of its contrastive thetas.
///
/// mean_ratio to i1 are estimated from the contrastive thetas of the loss or, with TrainingOptions::information_thetas, from more;
/// with information_epochs = "log" they are nan in the epochs between. The last three are nan in histories of files that were
/// written before they were measured.
struct EpochRecord {
  double training_loss = 0.0;
  double validation_loss = 0.0;
  double validation_loss_se = 0.0;  // standard error over validation rows
  double mean_ratio = 0.0;          // mean of exp h under the prior: 1 for an exact ratio
  double mean_log_z = 0.0;          // mean and sd over rows of log Z(x) = log mean_k exp h_k
  double sd_log_z = 0.0;
  double i0 = 0.0;              // mean of h - log Z
  double i1 = 0.0;              // mean of h - Z + 1
  double mean_log_ratio = 0.0;  // mean of h
  // Mean of (log(1 + exp h_1) + log(1 + exp -h))/2: gamma = 1, K = 1, ln 2 for a network that answers 0.
  double nre_a_loss = 0.0;
  double kld = 0.0;  // mean of h + exp(-h) - 1
};

/// A trained log ratio with everything that its use needs. What training hands to inference, diagnostics and files.
///
/// With a success model the network has learnt from successes only, log p(x | theta, ok)/p(x | ok), and the posterior is
/// p(theta | x_o, ok) ~ p(theta) P(ok | theta) exp h(theta, x_o).
struct RatioEstimator {
  PairNetwork network;
  Prior prior;
  Standardiser theta_standardiser;  // acts on theta in the prior's unbounded space
  Standardiser x_standardiser;
  std::vector<double> x_low, x_high;  // range of every column of x in the simulations
  Record settings;                    // loss, num_classes, gamma, ... and provenance; no wall times
  std::vector<EpochRecord> history;
  int best_epoch = 0;                                  // 1-based
  std::optional<SuccessModel> success = std::nullopt;  // P(ok | theta); empty when no row failed

  /// theta -> standardised unbounded float32 rows. Shapes theta [n, D] in; out [n, D] out.
  void encode_theta(MatrixView<const double> theta, MatrixView<float> out) const;
  /// Standardised x_o. Errors: ShapeError: wrong length; DomainError: not finite, with the column.
  std::vector<float> encode_x(std::span<const double> x_o) const;
};

/// Writes the estimator as a safetensors file whose header holds everything else; equal estimators give equal bytes.
/// Errors   IoError
void save_estimator(const RatioEstimator& estimator, const std::filesystem::path& path);
/// Errors   IoError: not an estimator, damaged, or of a newer format version
RatioEstimator load_estimator(const std::filesystem::path& path);

}  // namespace nrec
