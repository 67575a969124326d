// multivariate_normal by covariance or precision. D is small: the Cholesky factor is written out, and rows
// are solved in place without allocation.

#include <cmath>
#include <numbers>
#include <vector>

#include "nrec/core/options.h"
#include "priors/families.h"

namespace nrec {

namespace {

// Two numbers that mirror each other may differ by this much of sqrt(C_ii C_jj): what a text file of ten
// digits loses.
constexpr double kSymmetryTolerance = 1e-9;
// A pivot below this much of its diagonal element is rounding error: the matrix is singular in double
// precision.
constexpr double kSmallestPivot = 1e-14;

std::string element_text(const std::string& keyword, std::size_t i, std::size_t j, double value) {
  return keyword + "[" + std::to_string(i) + "][" + std::to_string(j) + "] = " + number_text(value);
}

void check_symmetric(const ParameterReader& parameters, const std::string& keyword,
                     const Matrix<double>& matrix) {
  for (std::size_t i = 0; i < matrix.rows(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double size = std::sqrt(std::fabs(matrix(i, i))) * std::sqrt(std::fabs(matrix(j, j)));
      if (std::fabs(matrix(i, j) - matrix(j, i)) <= kSymmetryTolerance * size || matrix(i, j) == matrix(j, i))
        continue;
      parameters.fail_domain(element_text(keyword, i, j, matrix(i, j)) + " but " +
                             element_text(keyword, j, i, matrix(j, i)) + "; a " + keyword +
                             " must be symmetric.");
    }
  }
}

// Lower factor L of the symmetric part: matrix = L L'.
Matrix<double> cholesky_factor(const ParameterReader& parameters, const std::string& keyword,
                               const Matrix<double>& matrix) {
  const std::size_t dim = matrix.rows();
  Matrix<double> lower(dim, dim);
  for (std::size_t j = 0; j < dim; ++j) {
    double pivot = matrix(j, j);
    for (std::size_t k = 0; k < j; ++k) pivot -= lower(j, k) * lower(j, k);
    if (!(pivot > kSmallestPivot * matrix(j, j))) {
      parameters.fail_domain(keyword + " is not positive definite (pivot " + std::to_string(j) +
                             " of its Cholesky factor is " + number_text(pivot) +
                             "); check its numbers, or leave out parameters that are functions of others.");
    }
    lower(j, j) = std::sqrt(pivot);
    for (std::size_t i = j + 1; i < dim; ++i) {
      double sum = 0.5 * matrix(i, j) + 0.5 * matrix(j, i);
      for (std::size_t k = 0; k < j; ++k) sum -= lower(i, k) * lower(j, k);
      lower(i, j) = sum / lower(j, j);
    }
  }
  return lower;
}

class MultivariateNormal final : public Distribution {
 public:
  MultivariateNormal(std::vector<double> mean, Matrix<double> lower, bool is_precision)
      : mean_(std::move(mean)), lower_(std::move(lower)), is_precision_(is_precision) {
    const double sign = is_precision ? 1.0 : -1.0;
    constant_ = -0.5 * static_cast<double>(dim()) * std::log(2.0 * std::numbers::pi);
    for (std::size_t i = 0; i < dim(); ++i) constant_ += sign * std::log(lower_(i, i));
  }

  std::size_t dim() const override { return mean_.size(); }
  std::pair<double, double> bounds(std::size_t) const override { return {-kInfinity, kInfinity}; }

  void sample(std::span<RandomStream> random, MatrixView<double> theta) const override {
    for (std::size_t row = 0; row < random.size(); ++row) {
      const std::span<double> values = theta.row(row);
      for (double& value : values) value = random[row].normal();
      is_precision_ ? solve_transposed(values) : multiply(values);
      for (std::size_t i = 0; i < dim(); ++i) values[i] += mean_[i];
    }
  }

  void add_log_prob(MatrixView<const double> theta, std::span<double> log_prob) const override {
    std::vector<double> z(dim());
    for (std::size_t row = 0; row < log_prob.size(); ++row) {
      for (std::size_t i = 0; i < dim(); ++i) z[i] = theta(row, i) - mean_[i];
      const double distance2 = is_precision_ ? norm2_after_multiply(z) : norm2_after_solve(z);
      log_prob[row] += finite_or_minus_infinity(constant_ - 0.5 * distance2);
    }
  }

  void add_gradient(MatrixView<const double> theta, MatrixView<const double> slope,
                    MatrixView<double> d_u) const override {
    std::vector<double> z(dim());
    for (std::size_t row = 0; row < theta.rows; ++row) {
      for (std::size_t i = 0; i < dim(); ++i) z[i] = theta(row, i) - mean_[i];
      if (is_precision_) {  // L (L' z)
        norm2_after_multiply(z);
        multiply(z);
      } else {  // L'^-1 (L^-1 z)
        norm2_after_solve(z);
        solve_transposed(z);
      }
      for (std::size_t i = 0; i < dim(); ++i) d_u(row, i) -= slope(row, i) * z[i];
    }
  }

 private:
  // z <- L z, last row first.
  void multiply(std::span<double> z) const {
    for (std::size_t i = dim(); i-- > 0;) {
      double sum = 0.0;
      for (std::size_t j = 0; j <= i; ++j) sum += lower_(i, j) * z[j];
      z[i] = sum;
    }
  }
  // z <- L'^-1 z, last row first.
  void solve_transposed(std::span<double> z) const {
    for (std::size_t i = dim(); i-- > 0;) {
      z[i] /= lower_(i, i);
      for (std::size_t j = 0; j < i; ++j) z[j] -= lower_(i, j) * z[i];
    }
  }
  // |L^-1 z|^2; z is overwritten.
  double norm2_after_solve(std::span<double> z) const {
    double norm2 = 0.0;
    for (std::size_t i = 0; i < dim(); ++i) {
      double sum = z[i];
      for (std::size_t j = 0; j < i; ++j) sum -= lower_(i, j) * z[j];
      z[i] = sum / lower_(i, i);
      norm2 += z[i] * z[i];
    }
    return norm2;
  }
  // |L' z|^2; z is overwritten: row i of L adds to columns before i, so column j is complete after the last
  // row.
  double norm2_after_multiply(std::span<double> z) const {
    for (std::size_t i = 0; i < dim(); ++i) {
      const double value = z[i];
      for (std::size_t j = 0; j < i; ++j) z[j] += lower_(i, j) * value;
      z[i] = lower_(i, i) * value;
    }
    double norm2 = 0.0;
    for (const double value : z) norm2 += value * value;
    return norm2;
  }

  std::vector<double> mean_;
  Matrix<double> lower_;  // factor of the covariance or of the precision
  bool is_precision_;
  double constant_;
};

}  // namespace

std::unique_ptr<const Distribution> make_multivariate_normal(const ParameterReader& parameters) {
  const std::size_t dim = parameters.dim();
  const bool is_precision = parameters.has("precision");
  const std::string keyword = is_precision ? "precision" : "covariance";
  std::vector<double> mean = parameters.finite_list("mean", dim);
  const Matrix<double> matrix(dim, dim, parameters.finite_list(keyword, dim * dim));
  check_symmetric(parameters, keyword, matrix);
  return std::make_unique<MultivariateNormal>(std::move(mean), cholesky_factor(parameters, keyword, matrix),
                                              is_precision);
}

}  // namespace nrec
