#include "nrec/diagnostics/mmd.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "diagnostics/pairwise_median.h"
#include "diagnostics/two_sample.h"
#include "kernels/gaussian_kernel.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"

namespace nrec {
namespace {

Matrix<double> scaled_rows(MatrixView<const double> set, const two_sample::Scaling& scaling) {
  Matrix<double> scaled(set.rows, set.cols);
  for (std::size_t i = 0; i < set.rows; ++i) {
    for (std::size_t j = 0; j < set.cols; ++j) scaled(i, j) = scaling.apply(set(i, j), j);
  }
  return scaled;
}

Matrix<double> transposed(const Matrix<double>& set) {
  Matrix<double> columns(set.cols(), set.rows());
  for (std::size_t i = 0; i < set.rows(); ++i) {
    for (std::size_t k = 0; k < set.cols(); ++k) columns(k, i) = set(i, k);
  }
  return columns;
}

// Sum of exp(-|a_i - b_j|^2 factor) over all pairs, or over i < j when a and b are one set. Each block of
// rows sums into its own slot and the slots are added in order.
double kernel_sum(const Matrix<double>& a, const Matrix<double>& b, double factor, ThreadPool& pool) {
  constexpr std::size_t kBlock = 64;
  const bool is_one_set = &a == &b;
  const Matrix<double> columns = transposed(b);
  std::vector<double> sums((a.rows() + kBlock - 1) / kBlock, 0.0);
  pool.run(sums.size(), [&](std::size_t block, int /*worker*/) {
    double block_sum = 0.0;
    for (std::size_t i = block * kBlock; i < std::min(a.rows(), (block + 1) * kBlock); ++i) {
      const std::size_t first = is_one_set ? i + 1 : 0;
      block_sum += gaussian_kernel_sum(
          &a(i, 0), {columns.values().data() + first, b.rows(), b.rows() - first, b.cols()}, factor);
    }
    sums[block] = block_sum;
  });
  double sum = 0.0;
  for (const double block_sum : sums) sum += block_sum;
  return sum;
}

double mean_within(const Matrix<double>& set, double factor, ThreadPool& pool) {
  const auto n = static_cast<double>(set.rows());
  return 2.0 * kernel_sum(set, set, factor, pool) / (n * (n - 1.0));
}

double bandwidth_of(const Matrix<double>& reference, const MmdOptions& options, ThreadPool& pool) {
  if (options.bandwidth > 0.0) return options.bandwidth;
  const double median = pairwise_median(reference, pool);
  if (median == 0.0) {
    throw DomainError(
        "mmd: half of the pairs of reference rows or more coincide, so their median distance is 0; give a "
        "bandwidth > 0");
  }
  if (!std::isfinite(median)) {
    throw DomainError(
        "mmd: the squared distances within reference are beyond double; rescale the columns or set z_score");
  }
  return median;
}

}  // namespace

MmdSummary mmd(MatrixView<const double> reference, MatrixView<const double> samples,
               const MmdOptions& options, ThreadPool& pool) {
  if (!(options.bandwidth >= 0.0) || std::isinf(options.bandwidth)) {
    throw DomainError("mmd: bandwidth = " + number_text(options.bandwidth) +
                      " must be > 0, or 0 for the median distance");
  }
  if (options.max_rows > 0) {
    reference = reference.middle_rows(0, std::min(options.max_rows, reference.rows));
    samples = samples.middle_rows(0, std::min(options.max_rows, samples.rows));
  }
  two_sample::check("mmd", reference, samples, 2, "(pairs within a set)");
  std::vector<std::size_t> uninformative;  // such a column adds 0 to every distance
  const two_sample::Scaling scaling =
      options.z_score ? two_sample::reference_scaling("mmd", reference, samples, &uninformative)
                      : two_sample::identity_scaling(reference.cols);
  const Matrix<double> p = scaled_rows(reference, scaling);
  const Matrix<double> q = scaled_rows(samples, scaling);
  MmdSummary summary;
  summary.bandwidth = bandwidth_of(p, options, pool);
  const double factor = 0.5 / (summary.bandwidth * summary.bandwidth);
  const double mean_across =
      kernel_sum(p, q, factor, pool) / (static_cast<double>(p.rows()) * static_cast<double>(q.rows()));
  summary.mmd2 = mean_within(p, factor, pool) + mean_within(q, factor, pool) - 2.0 * mean_across;
  return summary;
}

}  // namespace nrec
