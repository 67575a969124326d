#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <regex>
#include <stdexcept>
#include <string>

#include "nrec/core/array.h"

// Reads a two-dimensional little-endian float64 array in C order from a version 1 .npy file.
inline nrec::Matrix<double> read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char head[10];
  if (!file.read(head, sizeof head) || std::memcmp(head, "\x93NUMPY\x01", 7) != 0)
    throw std::runtime_error(path + ": not a version 1 .npy file");
  const auto length = static_cast<std::size_t>(static_cast<unsigned char>(head[8]) +
                                               256 * static_cast<unsigned char>(head[9]));
  std::string header(length, ' ');
  file.read(header.data(), static_cast<std::streamsize>(length));
  std::smatch shape;
  const bool is_double =
      header.find("'<f8'") != std::string::npos && header.find("'fortran_order': False") != std::string::npos;
  if (!is_double || !std::regex_search(header, shape, std::regex(R"(\((\d+), (\d+)\))"))) {
    throw std::runtime_error(path + ": need a two-dimensional C-order float64 array");
  }
  nrec::Matrix<double> values(std::stoul(shape[1]), std::stoul(shape[2]));
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.values().size() * sizeof(double)));
  if (!file) throw std::runtime_error(path + ": shorter than its header says");
  return values;
}
