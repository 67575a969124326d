#include "training/prior_objective.h"

#include <algorithm>
#include <numeric>

#include "nrec/core/random.h"
#include "training/encode_theta.h"

namespace nrec {

std::size_t fresh_thetas_per_row(const ContrastiveLoss& loss) {
  if (loss.shared_contrast()) return loss.num_contrastive();
  const std::size_t joint = loss.num_classes() - 1;
  return std::max(joint, loss.num_contrastive() - joint);
}

void fill_listed_candidates(const ContrastiveLoss& loss, std::size_t first,
                            std::span<const std::uint32_t> order, std::span<const std::uint32_t> other_order,
                            Matrix<std::uint32_t>& candidates) {
  const std::size_t per_row = fresh_thetas_per_row(loss);
  const std::size_t of_first = loss.shared_contrast() ? loss.num_contrastive() : loss.num_classes() - 1;
  for (std::size_t b = 0; b < candidates.rows(); ++b) {
    candidates(b, 0) = static_cast<std::uint32_t>(b);
    for (std::size_t j = 0; j < loss.num_contrastive(); ++j) {
      const bool is_first = j < of_first;
      const std::size_t at = b * per_row + (is_first ? j : j - of_first);
      candidates(b, j + 1) = static_cast<std::uint32_t>(first + (is_first ? order[at] : other_order[at]));
    }
  }
}

PriorObjective::PriorObjective(const Prior& prior, const TrainingData& data, const RunContext& run)
    : prior_(prior),
      data_(data),
      run_(run),
      order_(data.training, data.batch_size, run.seed),
      validation_(prior, data, run),
      fresh_(data.batch_size * fresh_thetas_per_row(data.loss), prior.dim()),
      theta_(data.batch_size + fresh_.rows(), prior.dim()),
      x_(data.batch_size, data.x.cols()),
      permutation_(fresh_.rows()),
      candidates_(data.batch_size, data.loss.num_columns()) {
  std::iota(permutation_.begin(), permutation_.end(), 0u);
  other_permutation_ = permutation_;
}

PairBatch PriorObjective::load_batch(std::int64_t step) {
  const std::span<const std::uint32_t> rows = order_.batch(step);
  gather_rows(data_.theta, rows, theta_);
  gather_rows(data_.x, rows, x_);
  const std::uint64_t first = static_cast<std::uint64_t>(step) * fresh_.rows();
  prior_.sample(run_.seed, Stream::contrast_theta, first, fresh_);
  encode_theta(prior_, data_.theta_standardiser, fresh_,
               theta_.view().middle_rows(data_.batch_size, fresh_.rows()), run_.pool);
  if (!data_.loss.shared_contrast()) {
    // The draws are in no order, so that one of the two assignments may be theirs.
    std::iota(other_permutation_.begin(), other_permutation_.end(), 0u);
    RandomStream random(run_.seed, Stream::contrast, static_cast<std::uint64_t>(step));
    random.shuffle(other_permutation_);
  }
  fill_listed_candidates(data_.loss, data_.batch_size, permutation_, other_permutation_, candidates_);
  return {theta_, x_, candidates_};
}

}  // namespace nrec
