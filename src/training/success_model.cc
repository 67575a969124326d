#include "nrec/training/success_model.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"
#include "nrec/networks/pair_step.h"
#include "training/encode_theta.h"
#include "training/softplus.h"
#include "training/success_objective.h"

namespace nrec {

namespace {

std::string short_text(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

std::string_view success_kind_name(SuccessKind kind) {
  switch (kind) {
    case SuccessKind::network:
      return "network";
    case SuccessKind::no_better:
      return "no better";
    case SuccessKind::too_few:
      break;
  }
  return "too few";
}

SuccessKind success_kind(std::string_view name) {
  for (const SuccessKind kind : {SuccessKind::network, SuccessKind::no_better, SuccessKind::too_few}) {
    if (name == success_kind_name(kind)) return kind;
  }
  throw ConfigError("success model: kind " + quoted_text(name) +
                    " is unknown; it must be one of network | no better | too few");
}

double SuccessCalibration::z_score() const {
  const double n = static_cast<double>(num_rows);
  // A held-out part that is predicted with certainty still has a granularity of one row.
  return n > 0 ? (mean_predicted - observed_rate) / (std::sqrt(mean_variance / n) + 1.0 / n) : 0.0;
}

std::string SuccessModel::sentence() const {
  const std::string counts =
      std::to_string(num_failed) + " of " + std::to_string(num_ok + num_failed) + " simulations failed";
  if (kind == SuccessKind::too_few)
    return counts + "; P(ok | theta) is taken as constant, for there are too few " +
           (num_failed < num_ok ? "failures" : "successes") + " to learn where they are";
  if (calibration.num_rows == 0)
    return counts + "; P(ok | theta) is taken as constant, for its network had no epoch with a finite loss";
  const std::string held_out = std::to_string(calibration.num_rows) + " held-out rows";
  if (kind == SuccessKind::no_better)
    return counts + "; P(ok | theta) is taken as constant, for a network predicts " + held_out +
           " no better (gain " + short_text("%.4f", calibration.gain) + " +- " +
           short_text("%.4f", calibration.gain_se) + " nats a row): failures do not visibly depend on theta";
  return counts + "; P(ok | theta) is learnt: on " + held_out + " mean " +
         short_text("%.4f", calibration.mean_predicted) + ", observed " +
         short_text("%.4f", calibration.observed_rate) + "; Brier score " +
         short_text("%.4f", calibration.brier_score) + ", of a constant rate " +
         short_text("%.4f", calibration.constant_brier_score);
}

struct SuccessEvaluator::State {
  Prior prior;
  double log_rate;
  Standardiser standardiser;
  ThreadPool& pool;
  std::optional<PairEvaluator> network;  // absent: a constant rate

  void check(MatrixView<const double> theta, std::size_t num_values) const {
    if (theta.cols == prior.dim() && num_values == theta.rows) return;
    throw ShapeError("success model: theta is [" + std::to_string(theta.rows) + ", " +
                     std::to_string(theta.cols) + "] with room for " + std::to_string(num_values) +
                     " values; it must have " + std::to_string(prior.dim()) + " columns and one value a row");
  }

  Matrix<float> encode(MatrixView<const double> theta) const {
    Matrix<float> encoded(theta.rows, theta.cols);
    encode_theta(prior, standardiser, theta, encoded, pool);
    return encoded;
  }
};

SuccessEvaluator::SuccessEvaluator(const SuccessModel& model, const Prior& prior, const RunContext& run)
    : state_(std::make_unique<State>(
          State{prior, std::log(model.rate()), model.theta_standardiser, run.pool, std::nullopt})) {
  if (!model.network) return;
  constexpr std::array kNoData = {0.0f};
  state_->network.emplace(*model.network, kNoData, run.isa, run.pool);
}

SuccessEvaluator::~SuccessEvaluator() = default;
SuccessEvaluator::SuccessEvaluator(SuccessEvaluator&&) noexcept = default;

void SuccessEvaluator::operator()(MatrixView<const double> theta, std::span<double> log_p) const {
  const State& s = *state_;
  s.check(theta, log_p.size());
  std::fill(log_p.begin(), log_p.end(), s.log_rate);
  if (!s.network) return;
  (*s.network)(s.encode(theta), log_p);
  for (double& value : log_p) value = -softplus(-value);
}

void SuccessEvaluator::with_gradient(MatrixView<const double> theta, std::span<double> log_p,
                                     MatrixView<double> d_u) const {
  const State& s = *state_;
  s.check(theta, log_p.size());
  if (d_u.rows != theta.rows || d_u.cols != theta.cols) {
    throw ShapeError("success model: d_u is [" + std::to_string(d_u.rows) + ", " + std::to_string(d_u.cols) +
                     "]; it must have the shape of theta, [" + std::to_string(theta.rows) + ", " +
                     std::to_string(theta.cols) + "]");
  }
  std::fill(log_p.begin(), log_p.end(), s.log_rate);
  for (std::size_t i = 0; i < d_u.rows; ++i) std::fill(d_u.row(i).begin(), d_u.row(i).end(), 0.0);
  if (!s.network) return;
  s.network->with_gradient(s.encode(theta), log_p, d_u);
  for (std::size_t i = 0; i < log_p.size(); ++i) {
    log_p[i] = -softplus(-log_p[i]);
    const double failure = -std::expm1(log_p[i]);  // exact where failures are rare
    for (std::size_t j = 0; j < d_u.cols; ++j) d_u(i, j) *= failure / s.standardiser.scale[j];
  }
}

}  // namespace nrec
