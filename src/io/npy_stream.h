#pragma once

#include <string_view>

#include "io/byte_source.h"
#include "nrec/io/numeric_array.h"

namespace nrec::io {

// The array of a .npy stream. Errors as read_npy.
NumericArray read_npy_stream(ByteSource& source, std::string_view where);

// Throws DomainError: `value`, element `index` of an array, cannot become a float64 without loss.
[[noreturn]] void throw_inexact_integer(std::string_view where, std::string_view value, std::size_t index);

// The whole number as float64. Errors: DomainError beyond 2^53.
double exact_double(std::int64_t value, std::size_t index, std::string_view where);
double exact_double(std::uint64_t value, std::size_t index, std::string_view where);

}  // namespace nrec::io
