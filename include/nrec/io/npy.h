#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "nrec/io/numeric_array.h"

namespace nrec {

/// Largest whole number up to which float64 holds all of them: 2^53.
inline constexpr double kLargestExactInteger = 9007199254740992.0;

/// The array of a .npy file (versions 1.0, 2.0, 3.0; both byte orders; C and Fortran order).
///
/// Errors   IoError: no .npy file, damaged header, truncated or too long; UnsupportedError: object, text,
/// void, structured,
///          datetime, complex and long double types; DomainError: a whole number beyond 2^53, which float64
///          cannot hold
/// Numerics bool becomes 0 and 1; float16 and float32 are exact; nan and infinity stay
/// Cost     O(size); 8 bytes of memory per element, allocated only after the file's size was found to match
/// Source   NumPy enhancement proposal 1, "A Simple File Format for NumPy Arrays"
NumericArray read_npy(const std::filesystem::path& path);

/// The same from memory; `where` starts the messages.
NumericArray parse_npy(std::string_view bytes, std::string_view where);

/// Bytes of a .npy file, version 1.0, little-endian, C order; a pure function of its argument.
/// Errors   UnsupportedError: dtype other than "<f8", "<f4", "<i8"; DomainError: a value that "<i8" cannot
/// hold, or a finite one beyond "<f4";
///          ShapeError: shape and number of values differ
std::string npy_bytes(const NumericArray& array);

/// Writes an array, or a matrix as float64 or float32, with the care of write_file.
void write_npy(const std::filesystem::path& path, const NumericArray& array);
void write_npy(const std::filesystem::path& path, MatrixView<const double> matrix,
               std::string_view dtype = "<f8");

}  // namespace nrec
