#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/io/numeric_array.h"

namespace nrec {

/// Rows of numbers from a file of any known format.
struct SampleTable {
  std::vector<std::string> names;  // of the columns; empty when the file has none
  Matrix<double> values;           // [S, D]
  bool one_dimensional = false;    // the file holds a list of shape [S], given here as [S, 1]
  std::vector<std::size_t> shape;  // of an array in the file, before it became a table; empty for text
  std::string array;               // name of the array in an archive; empty for other formats
};

/// The samples of a file: .csv, .csv.bz2, .npy, .npz, .h5, .hdf5 or .nc. The content decides, not the
/// extension. In an archive it is the first of `preferred_names` that is there, else the only array.
///
/// Errors   IoError: those of the formats; an archive with several arrays and none of the names; ShapeError:
/// no rows, no columns
SampleTable read_samples(const std::filesystem::path& path,
                         std::span<const std::string> preferred_names = {});

/// The arrays called `names` of a .npz, .h5, .hdf5 or .nc file, in that order.
/// Errors   IoError: those of the formats, a missing array, a format without names
NamedArrays read_named(const std::filesystem::path& path, std::span<const std::string> names);

/// Parameters and data of simulations, row by row, as they stand in files.
struct PairTable {
  std::vector<std::string> theta_names;  // empty when the files have none
  std::vector<std::string> x_names;
  Matrix<double> theta;        // [N, D]
  Matrix<double> x;            // [N, M]
  std::vector<double> status;  // [N] numbers as they stand in the array `status`; empty when there is none
};

/// theta and x of simulations. One file .npz, .h5, .hdf5 or .nc: its arrays `theta` and `x`, and `status` where it
/// has one. One .csv or .csv.bz2 with a header: the columns called `parameter_names` are theta and the others x;
/// without parameter_names, columns starting with theta or parameter are theta, those starting with x or data are x
/// (alone, with a number or with "_" after the word). Two .npy or .csv files: told apart by "theta" in the
/// name of one of them, else the first is theta. Several such files of one kind are not joined here.
///
/// Shapes   a list [N] is [N, 1]; more than two dimensions are flattened to [N, a b ...]
/// Errors   IoError: those of the formats, a missing array or column; ShapeError: row counts differ, no rows,
///          no columns, a status that is no list of N
PairTable read_pairs(std::span<const std::filesystem::path> files,
                     std::span<const std::string> parameter_names = {});

}  // namespace nrec
