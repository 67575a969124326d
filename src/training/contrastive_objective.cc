#include "training/contrastive_objective.h"

#include "nrec/core/random.h"
#include "nrec/training/contrastive_batch.h"

namespace nrec {

ContrastiveObjective::ContrastiveObjective(const TrainingData& data, std::uint64_t seed)
    : data_(data),
      seed_(seed),
      order_(data.training, data.batch_size, seed),
      validation_(data, seed),
      theta_(data.batch_size, data.theta.cols()),
      x_(data.batch_size, data.x.cols()),
      candidates_(data.batch_size, data.loss.num_columns()) {}

PairBatch ContrastiveObjective::load_batch(std::int64_t step) {
  const std::span<const std::uint32_t> rows = order_.batch(step);
  gather_rows(data_.theta, rows, theta_);
  gather_rows(data_.x, rows, x_);
  RandomStream random(seed_, Stream::contrast, static_cast<std::uint64_t>(step));
  fill_candidates(data_.loss, 0, data_.batch_size, random, candidates_);
  return {theta_, x_, candidates_};
}

}  // namespace nrec
