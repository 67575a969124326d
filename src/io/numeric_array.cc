#include "nrec/io/numeric_array.h"

#include <fmt/format.h>

#include <algorithm>

#include "nrec/core/error.h"

namespace nrec {

const NumericArray* find_array(const NamedArrays& arrays, std::string_view name) {
  const auto found =
      std::find_if(arrays.begin(), arrays.end(), [&](const auto& entry) { return entry.first == name; });
  return found == arrays.end() ? nullptr : &found->second;
}

Matrix<double> to_matrix(NumericArray array, std::string_view where) {
  if (array.shape.empty()) {
    throw ShapeError(
        fmt::format("{}: is a single number (shape ()) but a table with rows is needed; store shape (1, "
                    "number of columns)",
                    where));
  }
  std::size_t cols = 1;
  for (std::size_t d = 1; d < array.shape.size(); ++d) cols *= array.shape[d];
  require_internal(array.values.size() == array.shape[0] * cols,
                   "an array's shape does not match its values");
  return Matrix<double>(array.shape[0], cols, std::move(array.values));
}

NumericArray to_array(MatrixView<const double> matrix, std::string_view dtype) {
  NumericArray array{{matrix.rows, matrix.cols}, {}, std::string(dtype)};
  array.values.reserve(matrix.rows * matrix.cols);
  for (std::size_t i = 0; i < matrix.rows; ++i) {
    const auto row = matrix.row(i);
    array.values.insert(array.values.end(), row.begin(), row.end());
  }
  return array;
}

std::string shape_text(const std::vector<std::size_t>& shape) {
  if (shape.size() == 1) return fmt::format("({},)", shape[0]);
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace nrec
