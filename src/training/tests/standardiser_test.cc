#include "nrec/training/standardiser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "nrec/core/error.h"
#include "nrec/core/random.h"

namespace nrec {
namespace {

Matrix<double> column_of(std::size_t n, const std::function<double(std::size_t)>& value) {
  Matrix<double> x(n, 1);
  for (std::size_t i = 0; i < n; ++i) x(i, 0) = value(i);
  return x;
}

TEST(Standardiser, UsesMeanAndUnbiasedSd) {
  const Matrix<double> x(4, 1, {1, 2, 3, 6});
  StandardiserReport report;
  const Standardiser s = fit_standardiser(x, StandardiserMethod::independent, report);
  EXPECT_DOUBLE_EQ(s.shift[0], 3.0);
  EXPECT_DOUBLE_EQ(s.scale[0], std::sqrt(14.0 / 3));
  EXPECT_TRUE(report.constant_columns.empty());
}

TEST(Standardiser, CentresAConstantColumnAndLeavesItsScale) {
  for (const double value : {0.0, -0.087, 3e300, 1e-300}) {
    StandardiserReport report;
    const Standardiser s = fit_standardiser(column_of(1000, [&](std::size_t) { return value; }),
                                            StandardiserMethod::independent, report);
    EXPECT_EQ(s.scale[0], 1.0) << value;
    EXPECT_EQ(s.shift[0], value);
    EXPECT_EQ(report.constant_columns.size(), 1u);
  }
  // Constant up to rounding: sd 1.4e-17 about -0.087.
  StandardiserReport report;
  const Standardiser s = fit_standardiser(
      column_of(1000, [](std::size_t i) { return i % 2 ? -0.087 : std::nextafter(-0.087, 0.0); }),
      StandardiserMethod::independent, report);
  EXPECT_EQ(s.scale[0], 1.0);
  EXPECT_EQ(report.constant_columns.size(), 1u);
}

TEST(Standardiser, KeepsSmallVariationOnAHugeOffset) {
  RandomStream random(1, Stream::check);
  Matrix<double> x(5000, 1);
  std::vector<double> noise(5000);
  for (std::size_t i = 0; i < 5000; ++i) {
    noise[i] = 1e-3 * random.normal();
    x(i, 0) = 2460000.5 + noise[i];
  }
  StandardiserReport report;
  const Standardiser s = fit_standardiser(x, StandardiserMethod::independent, report);
  EXPECT_TRUE(report.constant_columns.empty());
  EXPECT_NEAR(s.scale[0], 1e-3, 4e-5);
  Matrix<float> z(5000, 1);
  s.apply(x, z);
  for (std::size_t i = 0; i < 5000; ++i)
    ASSERT_NEAR(z(i, 0), (2460000.5 + noise[i] - s.shift[0]) / s.scale[0], 1e-5);
}

TEST(Standardiser, ReportsHeavyTailsAndRobustIgnoresThem) {
  const Matrix<double> x =
      column_of(10001, [](std::size_t i) { return i == 0 ? 1e6 : static_cast<double>(i % 101) / 100; });
  StandardiserReport report;
  const Standardiser plain = fit_standardiser(x, StandardiserMethod::independent, report);
  EXPECT_EQ(report.heavy_tailed_columns.size(), 1u);
  EXPECT_GT(plain.scale[0], 1000);
  const Standardiser robust = fit_standardiser(x, StandardiserMethod::robust, report);
  EXPECT_NEAR(robust.shift[0], 0.5, 0.01);
  EXPECT_NEAR(robust.scale[0], 0.5 / 1.349, 0.01);
}

TEST(Standardiser, OneEnormousValueDoesNotHideTheOthers) {
  for (const double sentinel : {1e10, 1e20, 1e300}) {
    const Matrix<double> x = column_of(
        10001, [&](std::size_t i) { return i == 0 ? sentinel : static_cast<double>(i % 101) / 100; });
    StandardiserReport report;
    const Standardiser robust = fit_standardiser(x, StandardiserMethod::robust, report);
    EXPECT_EQ(report.heavy_tailed_columns.size(), 1u) << sentinel;
    EXPECT_NEAR(robust.scale[0], 0.5 / 1.349, 0.01) << sentinel;
  }
}

TEST(Standardiser, SparseCountsKeepTheirSd) {
  // One count among thousands of zeros: not constant, quartiles equal; robust falls back to mean and sd.
  const Matrix<double> x = column_of(1000, [](std::size_t i) { return i == 7 ? 1.0 : 0.0; });
  for (const auto method : {StandardiserMethod::independent, StandardiserMethod::robust}) {
    StandardiserReport report;
    const Standardiser s = fit_standardiser(x, method, report);
    EXPECT_TRUE(report.constant_columns.empty());
    EXPECT_NEAR(s.scale[0], std::sqrt(0.001), 1e-4);
  }
}

TEST(Standardiser, RefusesUnknownMethodAndWrongWidth) {
  EXPECT_THROW(standardiser_method("whiten"), ConfigError);
  const Standardiser s{{0.0, 0.0}, {1.0, 1.0}};
  Matrix<double> x(1, 3);
  Matrix<float> out(1, 3);
  EXPECT_THROW(s.apply(x, out), ShapeError);
}

}  // namespace
}  // namespace nrec
