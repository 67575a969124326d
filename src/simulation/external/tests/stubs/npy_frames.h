#pragma once

// .npy frames as a user's C++ program would write them: enough for arrays of int64 and float64 in C order.

#include <cstdint>
#include <cstring>
#include <istream>
#include <string>
#include <vector>

namespace stub {

inline bool read_frame(std::istream& in, std::vector<double>& values, std::vector<std::size_t>& shape) {
  char start[10];
  if (!in.read(start, sizeof(start))) return false;
  const std::size_t length =
      static_cast<unsigned char>(start[8]) + 256u * static_cast<unsigned char>(start[9]);
  std::string header(length, '\0');
  if (!in.read(header.data(), static_cast<std::streamsize>(length))) return false;
  shape.clear();
  std::size_t count = 1;
  for (const char* place = std::strchr(header.c_str(), '(') + 1; *place != ')';) {
    char* end = nullptr;
    shape.push_back(std::strtoul(place, &end, 10));
    count *= shape.back();
    for (place = end; *place == ',' || *place == ' ';) ++place;
  }
  std::vector<char> bytes(8 * count);
  if (!in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) return false;
  values.assign(count, 0.0);
  const bool is_integer = header.find("<i8") != std::string::npos;
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t whole;
    std::memcpy(&values[i], bytes.data() + 8 * i, 8);
    std::memcpy(&whole, bytes.data() + 8 * i, 8);
    if (is_integer) values[i] = static_cast<double>(whole);
  }
  return true;
}

inline std::string frame_bytes(const std::vector<double>& values, std::size_t rows, std::size_t columns) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                       std::to_string(columns) + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), 8 * values.size());
  return bytes;
}

}  // namespace stub
