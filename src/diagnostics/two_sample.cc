#include "diagnostics/two_sample.h"

#include <cmath>

#include "nrec/core/error.h"
#include "nrec/core/options.h"

namespace nrec::two_sample {
namespace {

void check_rows(std::string_view where, std::string_view name, MatrixView<const double> set,
                std::size_t min_rows, std::string_view reason) {
  if (set.rows < min_rows) {
    throw ShapeError(std::string(where) + ": " + std::string(name) + " has " + std::to_string(set.rows) +
                     " rows; at least " + std::to_string(min_rows) + " are needed " + std::string(reason));
  }
}

void check_finite(std::string_view where, std::string_view name, MatrixView<const double> set) {
  for (std::size_t i = 0; i < set.rows; ++i) {
    for (std::size_t j = 0; j < set.cols; ++j) {
      if (std::isfinite(set(i, j))) continue;
      throw DomainError(std::string(where) + ": " + std::string(name) + " holds " + number_text(set(i, j)) +
                        " in row " + std::to_string(i) + ", column " + std::to_string(j) +
                        " (counted from 0); remove such rows before comparing");
    }
  }
}

bool is_constant(MatrixView<const double> set, std::size_t column, double value) {
  for (std::size_t i = 0; i < set.rows; ++i) {
    if (set(i, column) != value) return false;
  }
  return true;
}

}  // namespace

void check(std::string_view where, MatrixView<const double> reference, MatrixView<const double> samples,
           std::size_t min_rows, std::string_view min_rows_reason) {
  if (reference.cols != samples.cols || reference.cols == 0) {
    throw ShapeError(std::string(where) + ": reference has " + std::to_string(reference.cols) +
                     " columns and samples " + std::to_string(samples.cols) +
                     "; both need the same number, at least 1");
  }
  check_rows(where, "reference", reference, min_rows, min_rows_reason);
  check_rows(where, "samples", samples, min_rows, min_rows_reason);
  check_finite(where, "reference", reference);
  check_finite(where, "samples", samples);
}

Scaling identity_scaling(std::size_t cols) {
  return {std::vector<double>(cols, 0.0), std::vector<double>(cols, 1.0)};
}

Scaling reference_scaling(std::string_view where, MatrixView<const double> reference,
                          MatrixView<const double> samples, std::vector<std::size_t>* uninformative) {
  Scaling scaling = identity_scaling(reference.cols);
  const auto n = static_cast<double>(reference.rows);
  for (std::size_t j = 0; j < reference.cols; ++j) {
    if (is_constant(reference, j, reference(0, j))) {
      if (!is_constant(samples, j, reference(0, j))) {
        throw DomainError(std::string(where) + ": column " + std::to_string(j) +
                          " (counted from 0) of reference is constant (" + number_text(reference(0, j)) +
                          ") but samples differ there, so it cannot be z-scored; leave the column out or set "
                          "z_score = false");
      }
      scaling.shift[j] = reference(0, j);
      uninformative->push_back(j);
      continue;
    }
    double mean = 0.0;
    for (std::size_t i = 0; i < reference.rows; ++i) mean += reference(i, j);
    mean /= n;
    double squares = 0.0;
    for (std::size_t i = 0; i < reference.rows; ++i)
      squares += (reference(i, j) - mean) * (reference(i, j) - mean);
    scaling.shift[j] = mean;
    scaling.scale[j] = std::sqrt(squares / (n - 1.0));
  }
  return scaling;
}

}  // namespace nrec::two_sample
