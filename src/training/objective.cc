#include "training/objective.h"

#include <algorithm>

#include "nrec/core/random.h"

namespace nrec {

RowLoss contrastive_row_loss(const ContrastiveLoss& loss) {
  return {[](const void* context, std::size_t, std::span<const float> logits, std::span<float> d_logits) {
            return static_cast<const ContrastiveLoss*>(context)->row(logits, d_logits);
          },
          &loss};
}

std::span<const std::uint32_t> EpochOrder::batch(std::int64_t step) {
  const std::int64_t epoch = step / steps_per_epoch();
  if (epoch != epoch_) {
    order_ = rows_;
    RandomStream random(seed_, Stream::minibatch, static_cast<std::uint64_t>(epoch));
    random.shuffle(order_);
    epoch_ = epoch;
  }
  const auto first = static_cast<std::size_t>(step % steps_per_epoch()) * batch_size_;
  return std::span(order_).subspan(first, batch_size_);
}

void gather_rows(const Matrix<float>& all, std::span<const std::uint32_t> rows, Matrix<float>& picked) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy(all.row(rows[i]).begin(), all.row(rows[i]).end(), picked.row(i).begin());
}

}  // namespace nrec
