#include "nrec/training/contrastive_batch.h"

#include <numeric>

#include "nrec/core/error.h"

namespace nrec {

std::vector<std::uint32_t> distinct_numbers(std::size_t count, std::size_t bound, RandomStream& random) {
  std::vector<std::uint32_t> numbers(bound);
  std::iota(numbers.begin(), numbers.end(), 1u);
  for (std::size_t i = 0; i < count; ++i) std::swap(numbers[i], numbers[i + random.integer(bound - i)]);
  numbers.resize(count);
  return numbers;
}

void fill_candidates(const ContrastiveLoss& loss, std::size_t own_first, std::size_t pool_size,
                     RandomStream& random, Matrix<std::uint32_t>& candidates) {
  const std::size_t distinct = loss.distinct_contrastive();
  if (pool_size < distinct + 1) {
    throw ShapeError("contrastive batch: " + std::to_string(distinct) +
                     " contrastive parameters need a pool of at least " + std::to_string(distinct + 1) +
                     " thetas but it has " + std::to_string(pool_size));
  }
  const std::size_t others = loss.num_contrastive();
  std::vector<std::uint32_t> shifts;
  if (loss.shared_contrast()) shifts = distinct_numbers(others, pool_size - 1, random);
  for (std::size_t b = 0; b < candidates.rows(); ++b) {
    const std::size_t own = own_first + b;
    candidates(b, 0) = static_cast<std::uint32_t>(own);
    if (!loss.shared_contrast()) {
      // Joint term: K - 1 others; marginal term: K others, drawn anew.
      const std::size_t joint = loss.num_classes() - 1;
      shifts = distinct_numbers(joint, pool_size - 1, random);
      if (others > joint) {
        const std::vector<std::uint32_t> marginal = distinct_numbers(others - joint, pool_size - 1, random);
        shifts.insert(shifts.end(), marginal.begin(), marginal.end());
      }
    }
    for (std::size_t j = 0; j < others; ++j)
      candidates(b, j + 1) = static_cast<std::uint32_t>((own + shifts[j]) % pool_size);
  }
}

}  // namespace nrec
