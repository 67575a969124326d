#include "nrec/diagnostics/moment_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "nrec/core/error.h"

namespace nrec {
namespace {

// Four points with mean 0 and covariance 4/3 I, and their images under p -> A p + b, so that all moments are known.
Matrix<double> square() { return Matrix<double>(4, 2, {1, 1, 1, -1, -1, 1, -1, -1}); }

Matrix<double> image(double a11, double a12, double a21, double a22, double b1, double b2) {
  Matrix<double> points = square();
  for (std::size_t i = 0; i < points.rows(); ++i) {
    const double u = points(i, 0), v = points(i, 1);
    points(i, 0) = a11 * u + a12 * v + b1;
    points(i, 1) = a21 * u + a22 * v + b2;
  }
  return points;
}

TEST(MomentErrors, HaveTheirClosedForm) {
  const double sd = std::sqrt(4.0 / 3.0);
  const MomentErrors errors = moment_errors(square(), image(3.0, 0.0, 0.0, 0.5, 2.0, -1.0));
  EXPECT_NEAR(errors.mean_error[0], 2.0 / sd, 1e-14);
  EXPECT_NEAR(errors.mean_error[1], -1.0 / sd, 1e-14);
  EXPECT_NEAR(errors.sd_error[0], 2.0, 1e-14);
  EXPECT_NEAR(errors.sd_error[1], -0.5, 1e-14);
  EXPECT_NEAR(errors.posterior_mean_error, 0.5 / sd, 1e-14) << "signs are kept";
  EXPECT_NEAR(errors.absolute_mean_error, 1.5 / sd, 1e-14);
  EXPECT_NEAR(errors.absolute_sd_error, 1.25, 1e-14);
  EXPECT_NEAR(errors.posterior_variance_ratio, 0.5 * (9.0 + 0.25), 1e-14);
  const MomentErrors none = moment_errors(square(), square());
  EXPECT_EQ(none.absolute_mean_error, 0.0);
  EXPECT_EQ(none.absolute_sd_error, 0.0);
  EXPECT_EQ(none.posterior_variance_ratio, 1.0);
}

TEST(GaussianKl, HasItsClosedForm) {
  EXPECT_NEAR(gaussian_kl(square(), square()), 0.0, 1e-14);
  // Equal covariances 4/3 I, shifted by (1, 2): |b|^2 / (2 * 4/3).
  EXPECT_NEAR(gaussian_kl(square(), image(1, 0, 0, 1, 1.0, 2.0)), 5.0 / (2.0 * 4.0 / 3.0), 1e-13);
  // S_Q = 4/3 diag(4, 1/4): (1/4 + 4 - 2 + log 1) / 2, in either direction.
  EXPECT_NEAR(gaussian_kl(square(), image(2, 0, 0, 0.5, 0, 0)), 0.5 * 2.25, 1e-13);
  EXPECT_NEAR(gaussian_kl(image(2, 0, 0, 0.5, 0, 0), square()), 0.5 * 2.25, 1e-13);
  // A = [[1, 0], [2, 3]], det A = 3: tr((A A')^-1) = |A^-1|^2 = 1 + 4/9 + 1/9; and the other way |A|^2 = 14.
  const Matrix<double> sheared = image(1, 0, 2, 3, 0, 0);
  EXPECT_NEAR(gaussian_kl(square(), sheared), 0.5 * (14.0 / 9.0 - 2.0 + 2.0 * std::log(3.0)), 1e-13);
  EXPECT_NEAR(gaussian_kl(sheared, square()), 0.5 * (14.0 - 2.0 - 2.0 * std::log(3.0)), 1e-13);
}

TEST(GaussianKl, DoesNotMindScaleAndPlace) {
  const double far = gaussian_kl(image(1e-6, 0, 0, 1e-6, 1e4, -1e4), image(2e-6, 0, 0, 5e-7, 1e4, -1e4));
  EXPECT_NEAR(far, 0.5 * 2.25, 1e-4);
}

TEST(GaussianKl, IsNanWithoutACovariance) {
  const Matrix<double> line(3, 2, {0, 0, 1, 1, 2, 2});
  EXPECT_TRUE(std::isnan(gaussian_kl(square(), line)));
  EXPECT_TRUE(std::isnan(gaussian_kl(line, square())));
}

TEST(MomentMetrics, RefuseWhatHasNoMoments) {
  const auto text = [](const Matrix<double>& reference, const Matrix<double>& samples) -> std::string {
    try {
      moment_errors(reference, samples);
    } catch (const Error& error) {
      const bool is_shape = dynamic_cast<const ShapeError*>(&error) != nullptr;
      return std::string(is_shape ? "ShapeError " : "DomainError ") + error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(text(Matrix<double>(2, 1, {3, 3}), Matrix<double>(2, 1, {3, 4})),
            "DomainError moment_errors: column 0 (counted from 0) of reference is constant (3), so it sets "
            "no scale; "
            "leave the column out");
  EXPECT_EQ(text(square(), Matrix<double>(1, 2, {1, 2})),
            "ShapeError moment_errors: samples has 1 rows; at least 2 are needed (standard deviations)");
  EXPECT_EQ(text(square(), Matrix<double>(2, 1, {1, 2})),
            "ShapeError moment_errors: reference has 2 columns and samples 1; both need the same number, at "
            "least 1");
  EXPECT_NE(
      text(square(), Matrix<double>(2, 2, {1, 2, std::nan(""), 1})).find("holds nan in row 1, column 0"),
      std::string::npos);
}

}  // namespace
}  // namespace nrec
