#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/byte_source.h"

namespace nrec::io {

// What the first bytes of a .npy file say.
struct NpyHeader {
  std::string dtype;  // "<f4"
  bool fortran_order = false;
  std::vector<std::size_t> shape;
  std::size_t bytes_before_data = 0;
};

// Reads up to the first data byte. Errors as read_npy.
NpyHeader read_npy_header(ByteSource& source, std::string_view where);

// Type code ('b', 'i', 'u', 'f'), bytes per element and byte order of a supported dtype.
struct NpyType {
  char kind = 'f';
  std::size_t bytes = 8;
  bool big_endian = false;
};
// Errors: UnsupportedError with the reason; IoError when it is no dtype at all.
NpyType parse_npy_type(std::string_view dtype, std::string_view where);

}  // namespace nrec::io
