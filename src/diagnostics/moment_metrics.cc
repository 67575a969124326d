#include "nrec/diagnostics/moment_metrics.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "core/cholesky.h"
#include "diagnostics/two_sample.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"

namespace nrec {
namespace {

struct Moments {
  std::vector<double> mean;
  Matrix<double> covariance;  // divisor n - 1
};

std::vector<double> column_means(MatrixView<const double> set) {
  std::vector<double> mean(set.cols, 0.0);
  for (std::size_t i = 0; i < set.rows; ++i) {
    for (std::size_t j = 0; j < set.cols; ++j) mean[j] += set(i, j);
  }
  for (double& value : mean) value /= static_cast<double>(set.rows);
  return mean;
}

std::vector<double> column_variances(MatrixView<const double> set, const std::vector<double>& mean) {
  std::vector<double> variance(set.cols, 0.0);
  for (std::size_t i = 0; i < set.rows; ++i) {
    for (std::size_t j = 0; j < set.cols; ++j) variance[j] += (set(i, j) - mean[j]) * (set(i, j) - mean[j]);
  }
  for (double& value : variance) value /= static_cast<double>(set.rows) - 1.0;
  return variance;
}

void check_not_constant(std::string_view where, MatrixView<const double> reference,
                        const std::vector<double>& variance) {
  for (std::size_t j = 0; j < variance.size(); ++j) {
    if (variance[j] > 0.0) continue;
    throw DomainError(std::string(where) + ": column " + std::to_string(j) +
                      " (counted from 0) of reference is constant (" + number_text(reference(0, j)) +
                      "), so it sets no scale; leave the column out");
  }
}

/// Mean and covariance of (set - shift) / scale.
Moments scaled_moments(MatrixView<const double> set, const std::vector<double>& shift,
                       const std::vector<double>& variance) {
  const std::size_t dim = set.cols;
  Moments moments{column_means(set), Matrix<double>(dim, dim)};
  for (std::size_t i = 0; i < set.rows; ++i) {
    for (std::size_t j = 0; j < dim; ++j) {
      const double deviation = set(i, j) - moments.mean[j];
      for (std::size_t k = 0; k <= j; ++k)
        moments.covariance(j, k) += deviation * (set(i, k) - moments.mean[k]);
    }
  }
  for (std::size_t j = 0; j < dim; ++j) {
    for (std::size_t k = 0; k <= j; ++k) {
      const double scale = std::sqrt(variance[j]) * std::sqrt(variance[k]);
      moments.covariance(j, k) /= (static_cast<double>(set.rows) - 1.0) * scale;
    }
  }
  for (std::size_t j = 0; j < dim; ++j)
    moments.mean[j] = (moments.mean[j] - shift[j]) / std::sqrt(variance[j]);
  return moments;
}

}  // namespace

MomentErrors moment_errors(MatrixView<const double> reference, MatrixView<const double> samples) {
  two_sample::check("moment_errors", reference, samples, 2, "(standard deviations)");
  const std::vector<double> mean_p = column_means(reference);
  const std::vector<double> mean_q = column_means(samples);
  const std::vector<double> variance_p = column_variances(reference, mean_p);
  const std::vector<double> variance_q = column_variances(samples, mean_q);
  check_not_constant("moment_errors", reference, variance_p);
  const auto dim = static_cast<double>(reference.cols);
  MomentErrors errors;
  for (std::size_t j = 0; j < reference.cols; ++j) {
    const double ratio = variance_q[j] / variance_p[j];
    errors.mean_error.push_back((mean_q[j] - mean_p[j]) / std::sqrt(variance_p[j]));
    errors.sd_error.push_back(std::sqrt(ratio) - 1.0);
    errors.posterior_mean_error += errors.mean_error[j] / dim;
    errors.posterior_variance_ratio += ratio / dim;
    errors.absolute_mean_error += std::fabs(errors.mean_error[j]) / dim;
    errors.absolute_sd_error += std::fabs(errors.sd_error[j]) / dim;
  }
  return errors;
}

double gaussian_kl(MatrixView<const double> reference, MatrixView<const double> samples) {
  two_sample::check("gaussian_kl", reference, samples, 2, "(covariances)");
  const std::vector<double> shift = column_means(reference);
  const std::vector<double> variance = column_variances(reference, shift);
  check_not_constant("gaussian_kl", reference, variance);
  const Moments p = scaled_moments(reference, shift, variance);
  const Moments q = scaled_moments(samples, shift, variance);
  const std::optional<Matrix<double>> factor_p = cholesky_factor(p.covariance);
  const std::optional<Matrix<double>> factor_q = cholesky_factor(q.covariance);
  if (!factor_p || !factor_q) return std::numeric_limits<double>::quiet_NaN();
  const std::size_t dim = reference.cols;
  // tr(S_Q^-1 S_P) = |L_Q^-1 L_P|^2, column by column.
  double sum = -static_cast<double>(dim) + 2.0 * (log_diagonal(*factor_q) - log_diagonal(*factor_p));
  std::vector<double> column(dim);
  const auto add_squares = [&] {
    solve_lower(*factor_q, column);
    for (const double value : column) sum += value * value;
  };
  for (std::size_t k = 0; k < dim; ++k) {
    for (std::size_t j = 0; j < dim; ++j) column[j] = (*factor_p)(j, k);
    add_squares();
  }
  for (std::size_t j = 0; j < dim; ++j) column[j] = q.mean[j] - p.mean[j];
  add_squares();
  return 0.5 * sum;
}

}  // namespace nrec
