#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "nrec/core/array.h"

namespace nrec {

/// The loss of a mini-batch and its gradient with respect to the logits come from these pure functions.
/// logits are h(theta, x), estimates of log r = log p(x | theta)/p(x). All sums are in float64.

/// NRE-C, for B rows of K candidates without (marginal) and K candidates with (joint, own theta first) the own theta.
///
///   D(h) = logsumexp(log K, log gamma + h_1, ..., log gamma + h_K)
///   L = -(1/B) sum_b [ (log K - D(m_b)) / (1 + gamma) + gamma/(1 + gamma) (log gamma + j_b1 - D(j_b)) ]
///
/// Shapes   marginal, joint [B, K] in; d_marginal, d_joint [B, K] out (may be empty views: no gradient)
/// Units    gamma > 0 and finite; the result is in nats
/// Errors   ShapeError: shapes differ or are empty; DomainError: gamma
/// Source   [Miller2022, eq. 7-9], with the class weights of the corrected code
double nre_c_loss(MatrixView<const double> marginal, MatrixView<const double> joint, double gamma,
                  MatrixView<double> d_marginal, MatrixView<double> d_joint);

/// NRE-B: multi-class cross entropy, own theta first. L = -(1/B) sum_b [ j_b1 - logsumexp_i j_bi ].
/// Shapes   joint [B, n] in, n >= 2; d_joint [B, n] out or empty.  Source [Durkan2020]
double nre_b_loss(MatrixView<const double> joint, MatrixView<double> d_joint);

/// NRE-A: binary cross entropy. L = (1/2B) sum_b [ softplus(m_b) + softplus(-j_b) ].
/// Shapes   marginal, joint [B] in; gradients [B] out or empty.  Source [Hermans2020]
double nre_a_loss(std::span<const double> marginal, std::span<const double> joint,
                  std::span<double> d_marginal, std::span<double> d_joint);

/// What the classifier of NRE-C says: q(0), q(1), ..., q(K) for candidates with logits h.
/// Shapes   logits [K] in; result [K + 1], sums to 1
std::vector<double> nre_c_class_probabilities(std::span<const double> logits, double gamma);

/// Which loss a network is trained with.
enum class LossKind { nre_a, nre_b, nre_c };
/// "nre-a", "nre-b", "nre-c". Errors: ConfigError with the known words.
LossKind loss_kind(std::string_view name);
std::string_view loss_name(LossKind kind);

/// What of NRE-C with k candidates does not depend on logits.
struct NreCConstants {
  double log_k, log_gamma, weight_marginal, weight_joint;

  NreCConstants(std::size_t k, double gamma);
  /// Of one row, from D(m), D(j) and the logit of its own theta.
  double loss(double d_marginal, double d_joint, double own) const;
};

/// A loss together with how its candidates are laid out in one row of logits.
///
/// Column 0 is the own theta. With shared contrast sets the row has K + 1 columns: the marginal term uses columns
/// 1..K, the joint term columns 0..K-1. With independent sets it has 2K: joint 0..K-1, marginal K..2K-1.
/// NRE-B uses columns 0..n-1 with n = num_classes; NRE-A is NRE-C's layout with K = 1.
class ContrastiveLoss {
 public:
  /// gamma = infinity turns NRE-C into NRE-B with n = num_classes.
  /// Errors   DomainError: num_classes < 1 (< 2 for NRE-B), gamma <= 0 or nan
  ContrastiveLoss(LossKind kind, std::size_t num_classes, double gamma, bool shared_contrast);

  LossKind kind() const { return kind_; }
  std::size_t num_classes() const { return num_classes_; }
  double gamma() const { return gamma_; }
  bool shared_contrast() const { return shared_; }

  /// Columns of a row of logits, the own theta included.
  std::size_t num_columns() const;
  /// Other thetas that a row needs: num_columns() - 1.
  std::size_t num_contrastive() const { return num_columns() - 1; }
  /// Distinct other rows that one row needs at once: what the batch must hold besides the row itself.
  std::size_t distinct_contrastive() const;
  /// First column of the logits that are draws of theta from the prior, given this x (all but own); their count.
  std::size_t first_contrastive() const { return 1; }

  /// Loss of one row (not divided by B) and its gradient; d_logits may be empty.
  ///
  /// Shapes   logits, d_logits [num_columns()]
  /// Numerics finite for |logits| up to 1e4 and more; no allocation
  double row(std::span<const float> logits, std::span<float> d_logits) const;

 private:
  LossKind kind_;
  std::size_t num_classes_;
  double gamma_;
  bool shared_;
  NreCConstants constants_;
};

}  // namespace nrec
