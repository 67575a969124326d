#include "training/success_objective.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/core/random.h"
#include "training/running_moments.h"
#include "training/softplus.h"

namespace nrec {

namespace {

constexpr double kHeldOutShare = 0.2;       // more than a ratio holds out: rare failures must be in it
constexpr std::size_t kStepsPerEpoch = 20;  // wanted, within the two bounds below
constexpr std::size_t kSmallestBatch = 16;
constexpr std::size_t kLargestBatch = 1024;
constexpr std::size_t kRowsPerMeasure = 8192;  // held-out rows that go through the network at once

void check_theta(const Prior& prior, const Matrix<double>& theta, const char* which) {
  if (theta.cols() != prior.dim()) {
    throw ShapeError("failures: theta of the " + std::string(which) + " simulations has " +
                     std::to_string(theta.cols()) + " columns but the prior has " +
                     std::to_string(prior.dim()) +
                     " parameters; list every column of theta under [parameters], in order");
  }
  for (std::size_t i = 0; i < theta.rows(); ++i) {
    if (prior.contains(theta.row(i))) continue;
    std::string row;
    for (const double value : theta.row(i)) row += (row.empty() ? "" : ", ") + number_text(value);
    throw DomainError(
        "failures: theta = (" + row + ") of a " + which +
        " simulation is outside the support of the prior; the simulations must be drawn from the "
        "prior that the problem names");
  }
}

/// Appends rows first .. first + count - 1 in random order: kHeldOutShare of them to the held-out rows, at least one.
void split_kind(std::size_t first, std::size_t count, RandomStream& random, SuccessData& data) {
  std::vector<std::uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(first));
  random.shuffle(rows);
  const auto share = static_cast<std::size_t>(std::lround(kHeldOutShare * static_cast<double>(count)));
  const auto cut = rows.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, share));
  data.held_out.insert(data.held_out.end(), rows.begin(), cut);
  data.training.insert(data.training.end(), cut, rows.end());
}

Matrix<double> unbounded_rows(const Prior& prior, const SimulationSet& simulations) {
  std::vector<double> values = simulations.theta.values();
  const std::vector<double>& failed = simulations.failed_theta.values();
  values.insert(values.end(), failed.begin(), failed.end());
  Matrix<double> all(simulations.num_rows() + simulations.failed_theta.rows(), prior.dim(),
                     std::move(values));
  prior.to_unbounded(all, all);
  return all;
}

}  // namespace

SuccessData prepare_success_data(const Prior& prior, const SimulationSet& simulations, std::uint64_t seed) {
  SuccessData data;
  data.num_ok = simulations.num_rows();
  data.num_failed = simulations.failed_theta.rows();
  if (data.num_ok == 0 || data.num_failed == 0) {
    throw DomainError(
        "failures: there are " + std::to_string(data.num_ok) + " successes and " +
        std::to_string(data.num_failed) +
        " failures; P(ok | theta) is learnt from both, so apply without_failures() with the rule "
        "model to a set that has some of each");
  }
  check_theta(prior, simulations.theta, "successful");
  check_theta(prior, simulations.failed_theta, "failed");
  const Matrix<double> unbounded = unbounded_rows(prior, simulations);
  StandardiserReport report;
  data.theta_standardiser = fit_standardiser(unbounded, StandardiserMethod::independent, report);
  data.theta = Matrix<float>(unbounded.rows(), unbounded.cols());
  data.theta_standardiser.apply(unbounded, data.theta);
  RandomStream random(seed, Stream::split);
  split_kind(0, data.num_ok, random, data);
  split_kind(data.num_ok, data.num_failed, random, data);
  data.batch_size = std::clamp(data.training.size() / kStepsPerEpoch, kSmallestBatch, kLargestBatch);
  return data;
}

SuccessObjective::SuccessObjective(const SuccessData& data, std::uint64_t seed)
    : data_(data),
      order_(data.training, data.batch_size, seed),
      theta_(data.batch_size, data.theta.cols()),
      x_(data.batch_size, 1),
      candidates_(data.batch_size, 1),
      is_ok_(data.batch_size),
      held_out_theta_(data.held_out.size(), data.theta.cols()) {
  std::iota(candidates_.values().begin(), candidates_.values().end(), 0u);
  gather_rows(data.theta, data.held_out, held_out_theta_);
}

PairBatch SuccessObjective::load_batch(std::int64_t step) {
  const std::span<const std::uint32_t> rows = order_.batch(step);
  gather_rows(data_.theta, rows, theta_);
  for (std::size_t b = 0; b < rows.size(); ++b) is_ok_[b] = data_.is_ok(rows[b]);
  return {theta_, x_, candidates_};
}

RowLoss SuccessObjective::row_loss() const {
  return {[](const void* context, std::size_t row, std::span<const float> logits, std::span<float> d_logits) {
            const auto& is_ok = *static_cast<const std::vector<std::uint8_t>*>(context);
            const double logit = logits[0];
            const double probability = 1.0 / (1.0 + std::exp(-logit));
            d_logits[0] = static_cast<float>(probability - is_ok[row]);
            return softplus(is_ok[row] ? -logit : logit);
          },
          &is_ok_};
}

std::vector<float> SuccessObjective::held_out_logits(PairNetworkStep& step,
                                                     const PairNetwork& network) const {
  const std::size_t rows = held_out_theta_.rows();
  const std::size_t most = std::min(rows, kRowsPerMeasure);
  const Matrix<float> x(most, 1);
  Matrix<std::uint32_t> candidates(most, 1);
  std::iota(candidates.values().begin(), candidates.values().end(), 0u);
  std::vector<float> logits(rows);
  for (std::size_t first = 0; first < rows; first += most) {
    const std::size_t count = std::min(most, rows - first);
    step.logits(network,
                {held_out_theta_.view().middle_rows(first, count), x.view().middle_rows(0, count),
                 candidates.view().middle_rows(0, count)},
                {logits.data() + first, count, 1});
  }
  return logits;
}

EpochRecord SuccessObjective::measure(PairNetworkStep& step, const PairNetwork& network, bool) {
  const std::vector<float> logits = held_out_logits(step, network);
  RunningMoments loss;
  for (std::size_t i = 0; i < logits.size(); ++i)
    loss.add(softplus(data_.is_ok(data_.held_out[i]) ? -logits[i] : logits[i]));
  EpochRecord record;
  record.validation_loss = loss.mean;
  record.validation_loss_se = loss.sd() / std::sqrt(loss.n);
  return record;
}

SuccessCalibration SuccessObjective::calibration(PairNetworkStep& step, const PairNetwork& network) const {
  const std::vector<float> logits = held_out_logits(step, network);
  const double rate = data_.rate();
  double num_ok = 0.0;
  RunningMoments predicted, variance, brier, constant_brier, log_score, constant_log_score, gain;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const bool is_ok = data_.is_ok(data_.held_out[i]);
    const double p = std::exp(-softplus(-logits[i]));
    const double log_p = -softplus(is_ok ? -logits[i] : logits[i]);
    const double constant_log_p = std::log(is_ok ? rate : 1.0 - rate);
    const auto squared = [&](double guess) { return (guess - is_ok) * (guess - is_ok); };
    predicted.add(p);
    num_ok += is_ok;
    variance.add(p * (1.0 - p));
    brier.add(squared(p));
    constant_brier.add(squared(rate));
    log_score.add(log_p);
    constant_log_score.add(constant_log_p);
    gain.add(log_p - constant_log_p);
  }
  return {.num_rows = logits.size(),
          .mean_predicted = predicted.mean,
          .observed_rate = num_ok / static_cast<double>(logits.size()),
          .mean_variance = variance.mean,
          .brier_score = brier.mean,
          .constant_brier_score = constant_brier.mean,
          .log_score = log_score.mean,
          .constant_log_score = constant_log_score.mean,
          .gain = gain.mean,
          .gain_se = gain.sd() / std::sqrt(gain.n)};
}

}  // namespace nrec
