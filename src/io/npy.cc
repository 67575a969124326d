#include "nrec/io/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "io/npy_header.h"
#include "io/npy_stream.h"
#include "io/sizes.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"

namespace nrec {

static_assert(std::endian::native == std::endian::little,
              "the file formats are little-endian and written from memory as it is");

namespace io {

namespace {

template <class T>
T load(const char* bytes, bool big_endian) {
  char ordered[sizeof(T)];
  std::memcpy(ordered, bytes, sizeof(T));
  if (big_endian) std::reverse(ordered, ordered + sizeof(T));
  T value;
  std::memcpy(&value, ordered, sizeof(T));
  return value;
}

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits.
double half_to_double(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  double magnitude;
  if (exponent == 0x1f) {
    magnitude = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(fraction + 0x400, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double element(const char* bytes, const NpyType& type, std::size_t index, std::string_view where) {
  const bool big = type.big_endian;
  switch (type.kind) {
    case 'b':
      return *bytes != 0 ? 1.0 : 0.0;
    case 'i':
      if (type.bytes == 1) return load<std::int8_t>(bytes, big);
      if (type.bytes == 2) return load<std::int16_t>(bytes, big);
      if (type.bytes == 4) return load<std::int32_t>(bytes, big);
      return exact_double(load<std::int64_t>(bytes, big), index, where);
    case 'u':
      if (type.bytes == 1) return load<std::uint8_t>(bytes, big);
      if (type.bytes == 2) return load<std::uint16_t>(bytes, big);
      if (type.bytes == 4) return load<std::uint32_t>(bytes, big);
      return exact_double(load<std::uint64_t>(bytes, big), index, where);
    default:
      if (type.bytes == 2) return half_to_double(load<std::uint16_t>(bytes, big));
      if (type.bytes == 4) return static_cast<double>(load<float>(bytes, big));
      return load<double>(bytes, big);
  }
}

// Walks a Fortran-order sequence and says where each element belongs in C order.
class FortranPlaces {
 public:
  explicit FortranPlaces(const std::vector<std::size_t>& shape)
      : shape_(shape), index_(shape.size()), stride_(shape.size(), 1) {
    for (std::size_t d = shape.size(); d-- > 1;) stride_[d - 1] = stride_[d] * shape[d];
  }
  std::size_t next() {
    const std::size_t place = place_;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      place_ += stride_[d];
      if (++index_[d] < shape_[d]) break;
      place_ -= stride_[d] * shape_[d];
      index_[d] = 0;
    }
    return place;
  }

 private:
  const std::vector<std::size_t>& shape_;
  std::vector<std::size_t> index_;
  std::vector<std::size_t> stride_;
  std::size_t place_ = 0;
};

}  // namespace

void throw_inexact_integer(std::string_view where, std::string_view value, std::size_t index) {
  throw DomainError(fmt::format(
      "{}: the whole number {} (element {}) is beyond 2^53 and float64 cannot hold it exactly; subtract an "
      "offset or store it as float64 yourself",
      where, value, index));
}

double exact_double(std::int64_t value, std::size_t index, std::string_view where) {
  constexpr auto kLimit = static_cast<std::int64_t>(kLargestExactInteger);
  if (value > kLimit || value < -kLimit) throw_inexact_integer(where, std::to_string(value), index);
  return static_cast<double>(value);
}

double exact_double(std::uint64_t value, std::size_t index, std::string_view where) {
  if (value > static_cast<std::uint64_t>(kLargestExactInteger))
    throw_inexact_integer(where, std::to_string(value), index);
  return static_cast<double>(value);
}

NumericArray read_npy_stream(ByteSource& source, std::string_view where) {
  const NpyHeader header = read_npy_header(source, where);
  const NpyType type = parse_npy_type(header.dtype, where);
  const auto count = element_count(header.shape, type.bytes);
  if (!count)
    throw IoError(fmt::format("{}: the .npy header is damaged: shape {} is too large for any memory", where,
                              shape_text(header.shape)));
  const std::uint64_t declared = static_cast<std::uint64_t>(*count) * type.bytes;
  const std::uint64_t present = source.size() - header.bytes_before_data;
  const auto wrong_length = [&](std::uint64_t found) {
    return IoError(fmt::format("{}: shape {} of type \"{}\" needs {} bytes of data but the file holds {}; {}",
                               where, shape_text(header.shape), header.dtype, declared, found,
                               found < declared ? "it is truncated, copy or write it again"
                                                : "it is damaged, write it again with numpy.save"));
  };
  if (present != declared) throw wrong_length(present);

  NumericArray array{header.shape, std::vector<double>(*count), header.dtype};
  FortranPlaces places(array.shape);
  constexpr std::size_t kChunkBytes = std::size_t{1} << 18;
  std::string chunk(static_cast<std::size_t>(std::min<std::uint64_t>(declared, kChunkBytes)), '\0');
  for (std::size_t done = 0; done < *count;) {
    const std::size_t wanted = std::min(*count - done, kChunkBytes / type.bytes);
    const std::size_t bytes = source.read(std::span(chunk).first(wanted * type.bytes));
    if (bytes != wanted * type.bytes) throw wrong_length(done * type.bytes + bytes);
    for (std::size_t i = 0; i < wanted; ++i) {
      const std::size_t place = header.fortran_order ? places.next() : done + i;
      array.values[place] = element(chunk.data() + i * type.bytes, type, place, where);
    }
    done += wanted;
  }
  return array;
}

}  // namespace io

namespace {

template <class T>
void append_values(std::string& bytes, const std::vector<double>& values) {
  const std::size_t start = bytes.size();
  bytes.resize(start + values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + start + i * sizeof(T), &value, sizeof(T));
  }
}

void check_whole_numbers(const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(std::fabs(values[i]) <= kLargestExactInteger) || std::floor(values[i]) != values[i]) {
      throw DomainError(
          fmt::format("write_npy: element {} = {} is not a whole number within 2^53, so type \"<i8\" cannot "
                      "hold it; use \"<f8\"",
                      i, values[i]));
    }
  }
}

void check_single_precision(const std::vector<double>& values) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) && std::fabs(values[i]) > kLargest) {
      throw DomainError(
          fmt::format("write_npy: element {} = {} is too large for type \"<f4\"; use \"<f8\"", i, values[i]));
    }
  }
}

}  // namespace

NumericArray parse_npy(std::string_view bytes, std::string_view where) {
  io::MemorySource source(bytes);
  return io::read_npy_stream(source, where);
}

NumericArray read_npy(const std::filesystem::path& path) {
  io::FileSource source(path);
  return io::read_npy_stream(source, path.string());
}

std::string npy_bytes(const NumericArray& array) {
  const auto count = io::element_count(array.shape, sizeof(double));
  if (count != array.values.size()) {
    throw ShapeError(fmt::format("write_npy: shape {} does not match {} values", shape_text(array.shape),
                                 array.values.size()));
  }
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", array.dtype,
                                   shape_text(array.shape));
  // Magic, version, length, header and newline together fill a multiple of 64 bytes, as the format asks for.
  constexpr std::size_t kFixedBytes = 10, kAlignment = 64;
  header.append(kAlignment - 1 - (kFixedBytes + header.size()) % kAlignment, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  if (array.dtype == "<f8") {
    append_values<double>(bytes, array.values);
  } else if (array.dtype == "<f4") {
    check_single_precision(array.values);
    append_values<float>(bytes, array.values);
  } else if (array.dtype == "<i8") {
    check_whole_numbers(array.values);
    append_values<std::int64_t>(bytes, array.values);
  } else {
    throw UnsupportedError(
        fmt::format("write_npy: type \"{}\" is not written; use \"<f8\", \"<f4\" or \"<i8\"", array.dtype));
  }
  return bytes;
}

void write_npy(const std::filesystem::path& path, const NumericArray& array) {
  write_file(path, npy_bytes(array));
}

void write_npy(const std::filesystem::path& path, MatrixView<const double> matrix, std::string_view dtype) {
  write_npy(path, to_array(matrix, dtype));
}

}  // namespace nrec
