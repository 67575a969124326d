#include "training/validation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nrec/training/contrastive_batch.h"
#include "training/encode_theta.h"
#include "training/objective.h"
#include "training/prior_objective.h"
#include "training/running_moments.h"

namespace nrec {

namespace {

Matrix<float> rows_of(const Matrix<float>& all, const std::vector<std::uint32_t>& rows) {
  Matrix<float> picked(rows.size(), all.cols());
  gather_rows(all, rows, picked);
  return picked;
}

}  // namespace

Validation::Validation(const TrainingData& data, std::uint64_t seed)
    : loss_(data.loss), x_(rows_of(data.x, data.validation)) {
  std::vector<std::uint32_t> pool = data.validation;
  // Too few validation rows for a contrastive set: the thetas of the training rows join the pool.
  if (pool.size() < loss_.distinct_contrastive() + 1)
    pool.insert(pool.end(), data.training.begin(), data.training.end());
  theta_ = rows_of(data.theta, pool);
  candidates_ = Matrix<std::uint32_t>(data.validation.size(), loss_.num_columns());
  RandomStream random(seed, Stream::validation);
  fill_candidates(loss_, 0, pool.size(), random, candidates_);
  logits_ = Matrix<float>(data.validation.size(), loss_.num_columns());
}

Validation::Validation(const Prior& prior, const TrainingData& data, const RunContext& run)
    : loss_(data.loss),
      x_(rows_of(data.x, data.validation)),
      candidates_(data.validation.size(), loss_.num_columns()),
      logits_(data.validation.size(), loss_.num_columns()) {
  const std::size_t rows = data.validation.size();
  const std::size_t needed = rows * fresh_thetas_per_row(loss_);
  const std::size_t count = std::min(needed, std::max(kMostThetas, 2 * fresh_thetas_per_row(loss_)));
  Matrix<double> fresh(count, prior.dim());
  prior.sample(run.seed, Stream::validation_theta, 0, fresh);
  theta_ = Matrix<float>(rows + count, prior.dim());
  gather_rows(data.theta, data.validation, theta_);
  encode_theta(prior, data.theta_standardiser, fresh, theta_.view().middle_rows(rows, count), run.pool);
  // Round and round; the other term half a round later, so that a row has no theta twice.
  std::vector<std::uint32_t> order(needed), other(needed);
  for (std::size_t i = 0; i < needed; ++i) {
    order[i] = static_cast<std::uint32_t>(i % count);
    other[i] = static_cast<std::uint32_t>((i + count / 2) % count);
  }
  fill_listed_candidates(loss_, rows, order, other, candidates_);
}

EpochRecord Validation::measure(PairNetworkStep& step, const PairNetwork& network) {
  step.logits(network, {theta_, x_, candidates_}, logits_);
  RunningMoments loss, ratio, log_z, i0, i1;
  for (std::size_t b = 0; b < logits_.rows(); ++b) {
    const std::span<const float> row = logits_.row(b);
    loss.add(loss_.row(row, {}));
    const std::span<const float> others = row.subspan(1);
    double top = -std::numeric_limits<double>::infinity();
    for (const float h : others) top = std::max(top, static_cast<double>(h));
    double sum = 0.0;
    for (const float h : others) {
      sum += std::exp(h - top);
      ratio.add(std::exp(static_cast<double>(h)));
    }
    const double z = top + std::log(sum) - std::log(static_cast<double>(others.size()));
    log_z.add(z);
    i0.add(row[0] - z);
    i1.add(row[0] - std::exp(z) + 1.0);
  }
  EpochRecord record;
  record.validation_loss = loss.mean;
  record.validation_loss_se = loss.sd() / std::sqrt(loss.n);
  record.mean_ratio = ratio.mean;
  record.mean_log_z = log_z.mean;
  record.sd_log_z = log_z.sd();
  record.i0 = i0.mean;
  record.i1 = i1.mean;
  return record;
}

}  // namespace nrec
