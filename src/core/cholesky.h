#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

#include "nrec/core/array.h"

// Cholesky factors of the small covariance matrices that several rooms fit.
namespace nrec {

/// Lower factor L of a symmetric matrix, A = L L'; only the lower triangle of A is read. Nothing when A is not positive
/// definite in double precision (a pivot below 1e-14 of its diagonal element).
inline std::optional<Matrix<double>> cholesky_factor(const Matrix<double>& matrix) {
  constexpr double kSmallestPivot = 1e-14;
  const std::size_t dim = matrix.rows();
  Matrix<double> lower(dim, dim);
  for (std::size_t j = 0; j < dim; ++j) {
    double pivot = matrix(j, j);
    for (std::size_t k = 0; k < j; ++k) pivot -= lower(j, k) * lower(j, k);
    if (!(pivot > kSmallestPivot * matrix(j, j)) || std::isinf(pivot)) return std::nullopt;
    lower(j, j) = std::sqrt(pivot);
    for (std::size_t i = j + 1; i < dim; ++i) {
      double sum = matrix(i, j);
      for (std::size_t k = 0; k < j; ++k) sum -= lower(i, k) * lower(j, k);
      lower(i, j) = sum / lower(j, j);
    }
  }
  return lower;
}

/// Solves L y = b in place.
inline void solve_lower(const Matrix<double>& lower, std::span<double> b) {
  for (std::size_t i = 0; i < b.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= lower(i, k) * b[k];
    b[i] /= lower(i, i);
  }
}

/// Sum of the logarithms of the diagonal: half the log determinant of L L'.
inline double log_diagonal(const Matrix<double>& lower) {
  double sum = 0.0;
  for (std::size_t i = 0; i < lower.rows(); ++i) sum += std::log(lower(i, i));
  return sum;
}

}  // namespace nrec
