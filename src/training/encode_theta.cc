#include "training/encode_theta.h"

#include <algorithm>

namespace nrec {

void encode_theta(const Prior& prior, const Standardiser& standardiser, MatrixView<const double> theta,
                  MatrixView<float> encoded, ThreadPool& pool) {
  constexpr std::size_t kRows = 1024;  // per task: the transform to unbounded space costs logarithms
  pool.run((theta.rows + kRows - 1) / kRows, [&](std::size_t task, int) {
    const std::size_t first = task * kRows;
    const std::size_t rows = std::min(kRows, theta.rows - first);
    Matrix<double> unbounded(rows, theta.cols);
    prior.to_unbounded(theta.middle_rows(first, rows), unbounded);
    standardiser.apply(unbounded, encoded.middle_rows(first, rows));
  });
}

}  // namespace nrec
