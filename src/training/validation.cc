#include "training/validation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "nrec/training/contrastive_batch.h"
#include "training/encode_theta.h"
#include "training/objective.h"
#include "training/prior_objective.h"
#include "training/running_moments.h"
#include "training/softplus.h"

namespace nrec {

namespace {

Matrix<float> rows_of(const Matrix<float>& all, const std::vector<std::uint32_t>& rows) {
  Matrix<float> picked(rows.size(), all.cols());
  gather_rows(all, rows, picked);
  return picked;
}

/// Thetas of the validation rows. Where they are too few for a contrastive set, those of the training rows follow.
Matrix<float> pool_of_thetas(const TrainingData& data) {
  std::vector<std::uint32_t> pool = data.validation;
  if (pool.size() < data.loss.distinct_contrastive() + 1)
    pool.insert(pool.end(), data.training.begin(), data.training.end());
  return rows_of(data.theta, pool);
}

}  // namespace

Validation::Validation(const TrainingData& data, Matrix<float> theta, std::uint64_t seed)
    : loss_(data.loss),
      theta_(std::move(theta)),
      x_(rows_of(data.x, data.validation)),
      candidates_(data.validation.size(), loss_.num_columns()),
      logits_(data.validation.size(), loss_.num_columns()) {
  if (data.information_thetas == 0) return;
  information_.emplace(x_.rows(), data.information_thetas, seed);
  own_logits_.resize(x_.rows());
}

Validation::Validation(const TrainingData& data, std::uint64_t seed)
    : Validation(data, pool_of_thetas(data), seed) {
  RandomStream random(seed, Stream::validation);
  fill_candidates(loss_, 0, theta_.rows(), random, candidates_);
}

Validation::Validation(const Prior& prior, const TrainingData& data, const RunContext& run)
    : Validation(data, Matrix<float>(), run.seed) {
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

EpochRecord Validation::measure(PairNetworkStep& step, const PairNetwork& network, bool information) {
  step.logits(network, {theta_, x_, candidates_}, logits_);
  RunningMoments loss, nre_a_loss, log_ratio, kld;
  for (std::size_t b = 0; b < logits_.rows(); ++b) {
    const std::span<const float> row = std::as_const(logits_).row(b);
    const double own = row[0];
    const double contrastive = row[loss_.first_contrastive()];
    loss.add(loss_.row(row, {}));
    nre_a_loss.add(0.5 * (softplus(contrastive) + softplus(-own)));
    log_ratio.add(own);
    kld.add(own + std::exp(-own) - 1.0);
  }
  EpochRecord record;
  record.validation_loss = loss.mean;
  record.validation_loss_se = loss.sd() / std::sqrt(loss.n);
  record.mean_log_ratio = log_ratio.mean;
  record.nre_a_loss = nre_a_loss.mean;
  record.kld = kld.mean;
  if (!information) {
    leave_out_information(record);
  } else if (!information_) {
    add_information_of_loss(record);
  } else {
    for (std::size_t b = 0; b < logits_.rows(); ++b) own_logits_[b] = logits_(b, 0);
    information_->measure(step, network, theta_.view().middle_rows(0, x_.rows()), x_, own_logits_, record);
  }
  return record;
}

void Validation::add_information_of_loss(EpochRecord& record) const {
  InformationMoments moments;
  for (std::size_t b = 0; b < logits_.rows(); ++b)
    moments.add(logits_(b, 0), logits_.row(b).subspan(loss_.first_contrastive()));
  moments.fill(record);
}

}  // namespace nrec
