#include "nrec/losses/contrastive_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nrec/core/error.h"
#include "nrec/core/options.h"

namespace nrec {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// log(first + factor sum_i exp h_i) given as logs, without overflow.
template <class Logits>
double log_sum(double log_first, double log_factor, const Logits& logits, std::size_t count) {
  double top = log_first;
  for (std::size_t i = 0; i < count; ++i) top = std::max(top, log_factor + static_cast<double>(logits[i]));
  if (!std::isfinite(top)) return top;
  double sum = std::exp(log_first - top);
  for (std::size_t i = 0; i < count; ++i) sum += std::exp(log_factor + static_cast<double>(logits[i]) - top);
  return top + std::log(sum);
}

double softplus(double h) { return h > 0 ? h + std::log1p(std::exp(-h)) : std::log1p(std::exp(h)); }
double sigmoid(double h) { return h > 0 ? 1.0 / (1.0 + std::exp(-h)) : std::exp(h) / (1.0 + std::exp(h)); }

void check_gamma(double gamma) {
  if (!(gamma > 0) || std::isinf(gamma)) {
    throw DomainError("nre_c_loss: gamma = " + number_text(gamma) +
                      " must be > 0 and finite; use the NRE-B loss for gamma = inf");
  }
}

/// Adds weight * softmax of the candidates (each exp(log_factor + h_i - log_total)) to d.
template <class Logits, class Gradient>
void add_softmax(const Logits& logits, std::size_t count, double log_factor, double log_total, double weight,
                 const Gradient& add) {
  for (std::size_t i = 0; i < count; ++i)
    add(i, weight * std::exp(log_factor + static_cast<double>(logits[i]) - log_total));
}

/// Loss of one row of NRE-C; `add_m(i, g)` and `add_j(i, g)` receive gradients.
template <class Logits, class AddM, class AddJ>
double nre_c_row(const Logits& marginal, const Logits& joint, const NreCConstants& constants, std::size_t k,
                 bool gradient, const AddM& add_m, const AddJ& add_j) {
  const auto [log_k, log_gamma, weight_marginal, weight_joint] = constants;
  const double d_m = log_sum(log_k, log_gamma, marginal, k);
  const double d_j = log_sum(log_k, log_gamma, joint, k);
  if (gradient) {
    add_softmax(marginal, k, log_gamma, d_m, weight_marginal, add_m);
    add_softmax(joint, k, log_gamma, d_j, weight_joint, add_j);
    add_j(0, -weight_joint);
  }
  return constants.loss(d_m, d_j, static_cast<double>(joint[0]));
}

/// The same for k + 1 logits of which the first k are the joint ones and the last k the marginal ones: each exp serves both. Returns false,
/// with nothing done, where one sum is too small beside the other.
bool shared_nre_c_row(std::span<const float> logits, const NreCConstants& constants, std::size_t k,
                      std::span<float> d_logits, double& loss) {
  constexpr double kLeastSum = 1e-250;
  const auto [log_k, log_gamma, weight_marginal, weight_joint] = constants;
  const double largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  const double top = std::max(log_k, log_gamma + largest);
  if (!std::isfinite(top)) return false;
  const auto term = [&](std::size_t i) { return std::exp(log_gamma + static_cast<double>(logits[i]) - top); };
  double both = std::exp(log_k - top);
  for (std::size_t i = 1; i < k; ++i) both += term(i);
  const double first = term(0), last = term(k), marginal = both + last, joint = both + first;
  if (!(std::min(marginal, joint) > kLeastSum)) return false;
  if (!d_logits.empty()) {
    const double of_marginal = weight_marginal / marginal, of_joint = weight_joint / joint;
    d_logits[0] = static_cast<float>(of_joint * first - weight_joint);
    for (std::size_t i = 1; i < k; ++i) d_logits[i] = static_cast<float>((of_marginal + of_joint) * term(i));
    d_logits[k] = static_cast<float>(of_marginal * last);
  }
  loss = constants.loss(top + std::log(marginal), top + std::log(joint), static_cast<double>(logits[0]));
  return true;
}

template <class Logits, class Add>
double nre_b_row(const Logits& joint, std::size_t n, bool gradient, const Add& add) {
  const double total = log_sum(-kInfinity, 0.0, joint, n);
  if (gradient) {
    add_softmax(joint, n, 0.0, total, 1.0, add);
    add(0, -1.0);
  }
  return total - static_cast<double>(joint[0]);
}

void check_same(MatrixView<const double> a, MatrixView<const double> b, const char* what) {
  if (a.rows != b.rows || a.cols != b.cols || a.rows == 0 || a.cols == 0) {
    throw ShapeError(std::string(what) + ": [" + std::to_string(a.rows) + ", " + std::to_string(a.cols) +
                     "] and [" + std::to_string(b.rows) + ", " + std::to_string(b.cols) +
                     "] must be equal and not empty");
  }
}

}  // namespace

double nre_c_loss(MatrixView<const double> marginal, MatrixView<const double> joint, double gamma,
                  MatrixView<double> d_marginal, MatrixView<double> d_joint) {
  check_same(marginal, joint, "nre_c_loss: shapes of marginal and joint");
  check_gamma(gamma);
  const bool gradient = d_marginal.data != nullptr;
  if (gradient) {
    check_same(marginal, d_marginal, "nre_c_loss: shapes of marginal and d_marginal");
    check_same(joint, d_joint, "nre_c_loss: shapes of joint and d_joint");
    for (std::size_t b = 0; b < joint.rows; ++b) {
      std::fill_n(d_marginal.row(b).begin(), joint.cols, 0.0);
      std::fill_n(d_joint.row(b).begin(), joint.cols, 0.0);
    }
  }
  const double scale = 1.0 / static_cast<double>(joint.rows);
  const NreCConstants constants(joint.cols, gamma);
  double loss = 0.0;
  for (std::size_t b = 0; b < joint.rows; ++b) {
    loss += nre_c_row(
        marginal.row(b), joint.row(b), constants, joint.cols, gradient,
        [&](std::size_t i, double g) { d_marginal(b, i) += scale * g; },
        [&](std::size_t i, double g) { d_joint(b, i) += scale * g; });
  }
  return loss * scale;
}

double nre_b_loss(MatrixView<const double> joint, MatrixView<double> d_joint) {
  if (joint.rows == 0 || joint.cols < 2) {
    throw ShapeError("nre_b_loss: joint is [" + std::to_string(joint.rows) + ", " +
                     std::to_string(joint.cols) + "]; it needs at least one row and two candidates");
  }
  const bool gradient = d_joint.data != nullptr;
  if (gradient) {
    check_same(joint, d_joint, "nre_b_loss: shapes of joint and d_joint");
    for (std::size_t b = 0; b < joint.rows; ++b) std::fill_n(d_joint.row(b).begin(), joint.cols, 0.0);
  }
  const double scale = 1.0 / static_cast<double>(joint.rows);
  double loss = 0.0;
  for (std::size_t b = 0; b < joint.rows; ++b) {
    loss += nre_b_row(joint.row(b), joint.cols, gradient,
                      [&](std::size_t i, double g) { d_joint(b, i) += scale * g; });
  }
  return loss * scale;
}

double nre_a_loss(std::span<const double> marginal, std::span<const double> joint,
                  std::span<double> d_marginal, std::span<double> d_joint) {
  const bool gradient = !d_marginal.empty();
  if (marginal.size() != joint.size() || marginal.empty() ||
      (gradient && (d_marginal.size() != marginal.size() || d_joint.size() != marginal.size()))) {
    throw ShapeError("nre_a_loss: marginal has " + std::to_string(marginal.size()) + " rows and joint " +
                     std::to_string(joint.size()) + "; they (and the gradients) must be equal and not empty");
  }
  const double scale = 0.5 / static_cast<double>(joint.size());
  double loss = 0.0;
  for (std::size_t b = 0; b < joint.size(); ++b) {
    loss += softplus(marginal[b]) + softplus(-joint[b]);
    if (gradient) {
      d_marginal[b] = scale * sigmoid(marginal[b]);
      d_joint[b] = -scale * sigmoid(-joint[b]);
    }
  }
  return loss * scale;
}

std::vector<double> nre_c_class_probabilities(std::span<const double> logits, double gamma) {
  if (logits.empty())
    throw ShapeError("nre_c_class_probabilities: logits is empty; it needs at least one candidate");
  check_gamma(gamma);
  const double log_k = std::log(static_cast<double>(logits.size()));
  const double total = log_sum(log_k, std::log(gamma), logits, logits.size());
  std::vector<double> q = {std::exp(log_k - total)};
  for (const double h : logits) q.push_back(std::exp(std::log(gamma) + h - total));
  return q;
}

LossKind loss_kind(std::string_view name) {
  for (const LossKind kind : {LossKind::nre_a, LossKind::nre_b, LossKind::nre_c}) {
    if (name == loss_name(kind)) return kind;
  }
  throw ConfigError("loss = \"" + std::string(name) +
                    "\" is unknown; it must be one of nre-a | nre-b | nre-c");
}

std::string_view loss_name(LossKind kind) {
  switch (kind) {
    case LossKind::nre_a:
      return "nre-a";
    case LossKind::nre_b:
      return "nre-b";
    case LossKind::nre_c:
      break;
  }
  return "nre-c";
}

NreCConstants::NreCConstants(std::size_t k, double gamma)
    : log_k(std::log(static_cast<double>(k))),
      log_gamma(std::log(gamma)),
      weight_marginal(1.0 / (1.0 + gamma)),
      weight_joint(gamma / (1.0 + gamma)) {}

double NreCConstants::loss(double d_marginal, double d_joint, double own) const {
  return -weight_marginal * (log_k - d_marginal) - weight_joint * (log_gamma + own - d_joint);
}

ContrastiveLoss::ContrastiveLoss(LossKind kind, std::size_t num_classes, double gamma, bool shared_contrast)
    : kind_(kind),
      num_classes_(kind == LossKind::nre_a ? 1 : num_classes),
      gamma_(gamma),
      shared_(shared_contrast),
      constants_(num_classes_, kind == LossKind::nre_a ? 1.0 : gamma) {
  if (!(gamma > 0))
    throw DomainError("loss: gamma = " + number_text(gamma) + " must be > 0 (inf turns NRE-C into NRE-B)");
  if (kind_ == LossKind::nre_c && std::isinf(gamma)) kind_ = LossKind::nre_b;
  const std::size_t least = kind_ == LossKind::nre_b ? 2 : 1;
  if (num_classes_ < least) {
    throw DomainError(
        "loss: num_classes = " + std::to_string(num_classes) + " must be at least " + std::to_string(least) +
        " for " + std::string(loss_name(kind_)) +
        (kind_ == LossKind::nre_b ? " (with one candidate its loss is zero for every network)" : ""));
  }
}

std::size_t ContrastiveLoss::num_columns() const {
  if (kind_ == LossKind::nre_b) return num_classes_;
  return shared_ ? num_classes_ + 1 : 2 * num_classes_;
}

std::size_t ContrastiveLoss::distinct_contrastive() const {
  return kind_ == LossKind::nre_b ? num_classes_ - 1 : num_classes_;
}

double ContrastiveLoss::row(std::span<const float> logits, std::span<float> d_logits) const {
  const bool gradient = !d_logits.empty();
  if (kind_ != LossKind::nre_b && shared_) {
    double loss = 0.0;
    if (shared_nre_c_row(logits, constants_, num_classes_, d_logits, loss)) return loss;
  }
  if (gradient) std::fill(d_logits.begin(), d_logits.end(), 0.0f);
  const auto add_joint = [&](std::size_t i, double g) { d_logits[i] += static_cast<float>(g); };
  if (kind_ == LossKind::nre_b) return nre_b_row(logits, num_classes_, gradient, add_joint);
  const std::size_t first_marginal = shared_ ? 1 : num_classes_;
  return nre_c_row(
      logits.subspan(first_marginal, num_classes_), logits.first(num_classes_), constants_, num_classes_,
      gradient, [&](std::size_t i, double g) { d_logits[first_marginal + i] += static_cast<float>(g); },
      add_joint);
}

}  // namespace nrec
