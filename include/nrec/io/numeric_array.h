#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nrec/core/array.h"

namespace nrec {

/// An array as a file holds it, with its values as float64.
struct NumericArray {
  std::vector<std::size_t> shape;  // empty: a single number
  std::vector<double> values;      // C order; as many as the product of shape
  std::string dtype = "<f8";       // NumPy's word for the type in the file: "<f4", ">i8", "|b1"
};

/// Arrays with their names, in the order of the file.
using NamedArrays = std::vector<std::pair<std::string, NumericArray>>;

/// Array called `name`, or nullptr.
const NumericArray* find_array(const NamedArrays& arrays, std::string_view name);

/// The array as a table with one row per entry of its first dimension.
///
/// Shapes   [N, M] stays; [N] becomes [N, 1]; [N, a, b, ...] becomes [N, a b ...]
/// Errors   ShapeError: a single number (no dimensions)
Matrix<double> to_matrix(NumericArray array, std::string_view where);

/// The matrix as an array to be written; dtype "<f8" or "<f4".
NumericArray to_array(MatrixView<const double> matrix, std::string_view dtype = "<f8");

/// "(3, 4)", "(3,)", "()": a shape as NumPy writes it.
std::string shape_text(const std::vector<std::size_t>& shape);

}  // namespace nrec
