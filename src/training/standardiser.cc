#include "nrec/training/standardiser.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/sorted_quantile.h"
#include "nrec/core/error.h"

namespace nrec {

namespace {

constexpr double kNormalIqr = 1.3489795003921634;  // interquartile range of a standard normal
constexpr double kHeavyTail = 10.0;
constexpr double kRoundingUlps = 8.0;

struct ColumnMoments {
  double mean;
  double sd;
  double size;  // largest magnitude
};

ColumnMoments moments_of(MatrixView<const double> values, std::size_t column) {
  const double origin = values(0, column);
  const double n = static_cast<double>(values.rows);
  double sum = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < values.rows; ++i) {
    sum += values(i, column) - origin;
    size = std::max(size, std::fabs(values(i, column)));
  }
  const double offset = sum / n;
  double sum2 = 0.0;
  for (std::size_t i = 0; i < values.rows; ++i) {
    const double d = values(i, column) - origin - offset;
    sum2 += d * d;
  }
  return {origin + offset, values.rows > 1 ? std::sqrt(sum2 / (n - 1)) : 0.0, size};
}

}  // namespace

StandardiserMethod standardiser_method(std::string_view name) {
  if (name == "independent") return StandardiserMethod::independent;
  if (name == "robust") return StandardiserMethod::robust;
  if (name == "none") return StandardiserMethod::none;
  throw ConfigError("standardise_x = \"" + std::string(name) +
                    "\" is unknown; it must be one of independent | robust | none");
}

void Standardiser::apply(MatrixView<const double> values, MatrixView<float> out) const {
  if (values.cols != dim() || out.cols != dim() || out.rows != values.rows) {
    throw ShapeError("standardise: values have " + std::to_string(values.cols) +
                     " columns; the estimator wants " + std::to_string(dim()));
  }
  for (std::size_t i = 0; i < values.rows; ++i) {
    for (std::size_t j = 0; j < dim(); ++j)
      out(i, j) = static_cast<float>((values(i, j) - shift[j]) / scale[j]);
  }
}

Standardiser fit_standardiser(MatrixView<const double> values, StandardiserMethod method,
                              StandardiserReport& report, ConstantColumns constants) {
  if (values.rows == 0) throw ShapeError("standardise: no rows to take statistics from");
  Standardiser result;
  std::vector<double> column(values.rows);
  for (std::size_t j = 0; j < values.cols; ++j) {
    const ColumnMoments moments = moments_of(values, j);
    const double rounding = kRoundingUlps * std::numeric_limits<double>::epsilon() * moments.size;
    const bool constant = !(moments.sd > rounding);
    if (constant) report.constant_columns.push_back(j);
    if (method == StandardiserMethod::none) {
      result.shift.push_back(0.0);
      result.scale.push_back(1.0);
      continue;
    }
    for (std::size_t i = 0; i < values.rows; ++i) column[i] = values(i, j);
    std::sort(column.begin(), column.end());
    const double low = sorted_quantile(column, 0.25);
    const double high = sorted_quantile(column, 0.75);
    // The quartiles' own size decides what is rounding: one huge value must not hide the spread of all others.
    const double iqr_rounding =
        kRoundingUlps * std::numeric_limits<double>::epsilon() * std::max(std::fabs(low), std::fabs(high));
    const double iqr = high - low;
    if (!constant && iqr > iqr_rounding && moments.sd > kHeavyTail * iqr / kNormalIqr)
      report.heavy_tailed_columns.push_back(j);
    if (method == StandardiserMethod::robust && !constant && iqr > iqr_rounding) {
      result.shift.push_back(sorted_quantile(column, 0.5));
      result.scale.push_back(iqr / kNormalIqr);
    } else {
      result.shift.push_back(moments.mean);
      const bool tiny = constants == ConstantColumns::tiny_scale;
      result.scale.push_back(tiny ? std::max(moments.sd, kTinyScale) : constant ? 1.0 : moments.sd);
    }
  }
  return result;
}

}  // namespace nrec
