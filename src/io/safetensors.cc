#include "nrec/io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "io/safetensors_header.h"
#include "io/sizes.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"
#include "nrec/io/numeric_array.h"

namespace nrec {

namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own library

template <class T>
NamedTensor made(TensorType dtype, std::string name, std::vector<std::size_t> shape,
                 std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  NamedTensor tensor{std::move(name), dtype, std::move(shape), {bytes.begin(), bytes.end()}};
  if (io::element_count(tensor.shape, sizeof(T)) != values.size()) {
    throw ShapeError(fmt::format("make_tensor: \"{}\" has shape {} but {} values", tensor.name,
                                 shape_text(tensor.shape), values.size()));
  }
  return tensor;
}

template <class T>
std::vector<T> values_as(TensorType dtype, const NamedTensor& tensor) {
  if (tensor.dtype != dtype) {
    throw ShapeError(
        fmt::format("tensor \"{}\" has type {} where {} is needed; was the file written by another version?",
                    tensor.name, io::tensor_type_name(tensor.dtype), io::tensor_type_name(dtype)));
  }
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(T));
  return values;
}

void check_tensors(std::span<const NamedTensor> tensors) {
  std::vector<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    const std::size_t width = io::tensor_type_bytes(tensor.dtype);
    const auto count = io::element_count(tensor.shape, width);
    if (!count || *count * width != tensor.bytes.size()) {
      throw ShapeError(fmt::format("write_safetensors: tensor \"{}\" has shape {} of {} but {} bytes",
                                   tensor.name, shape_text(tensor.shape), io::tensor_type_name(tensor.dtype),
                                   tensor.bytes.size()));
    }
    if (tensor.name.empty() || tensor.name == "__metadata__") {
      throw ConfigError(fmt::format(
          "write_safetensors: \"{}\" cannot be the name of a tensor; choose another", tensor.name));
    }
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw ConfigError(fmt::format("write_safetensors: the name \"{}\" is used twice; rename one", *twice));
}

// Tensors must lie one after the other, fill the data and match their shapes.
void check_offsets(const std::vector<io::TensorEntry>& entries, std::size_t data_bytes,
                   std::string_view where) {
  const auto fail = [&](std::string_view what) {
    throw IoError(
        fmt::format("{}: {}; the file is truncated or damaged, copy or write it again", where, what));
  };
  std::size_t expected = 0;
  for (const io::TensorEntry& entry : entries) {
    if (entry.end > data_bytes || entry.begin > entry.end) {
      fail(fmt::format("tensor \"{}\" lies at bytes {} to {} but the file has {} bytes of data", entry.name,
                       entry.begin, entry.end, data_bytes));
    }
    if (entry.begin != expected) {
      fail(fmt::format(
          "tensor \"{}\" starts at byte {} where {} is due (tensors must not overlap or leave gaps)",
          entry.name, entry.begin, expected));
    }
    const std::size_t width = io::tensor_type_bytes(entry.dtype);
    const auto count = io::element_count(entry.shape, width);
    if (!count || *count * width != entry.end - entry.begin) {
      fail(fmt::format("tensor \"{}\" has shape {} of {} but {} bytes", entry.name, shape_text(entry.shape),
                       io::tensor_type_name(entry.dtype), entry.end - entry.begin));
    }
    if (entry.begin % width != 0)
      fail(fmt::format("tensor \"{}\" starts at byte {}, which is not aligned to its type {}", entry.name,
                       entry.begin, io::tensor_type_name(entry.dtype)));
    expected = entry.end;
  }
  if (expected != data_bytes)
    fail(fmt::format("the tensors end at byte {} but the file has {} bytes of data", expected, data_bytes));
}

}  // namespace

const NamedTensor* TensorFile::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const NamedTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

NamedTensor make_tensor(std::string name, std::vector<std::size_t> shape, std::span<const float> values) {
  return made(TensorType::f32, std::move(name), std::move(shape), values);
}
NamedTensor make_tensor(std::string name, std::vector<std::size_t> shape, std::span<const double> values) {
  return made(TensorType::f64, std::move(name), std::move(shape), values);
}
NamedTensor make_tensor(std::string name, std::vector<std::size_t> shape,
                        std::span<const std::int64_t> values) {
  return made(TensorType::i64, std::move(name), std::move(shape), values);
}

std::vector<float> f32_values(const NamedTensor& tensor) { return values_as<float>(TensorType::f32, tensor); }
std::vector<double> f64_values(const NamedTensor& tensor) {
  return values_as<double>(TensorType::f64, tensor);
}
std::vector<std::int64_t> i64_values(const NamedTensor& tensor) {
  return values_as<std::int64_t>(TensorType::i64, tensor);
}

std::string safetensors_bytes(std::span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  check_tensors(tensors);
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_partition(order.begin(), order.end(),
                        [](const NamedTensor* tensor) { return io::tensor_type_bytes(tensor->dtype) == 8; });
  io::TensorHeader header{{}, metadata};
  std::size_t end = 0;
  for (const NamedTensor* tensor : order) {
    header.entries.push_back({tensor->name, tensor->dtype, tensor->shape, end, end + tensor->bytes.size()});
    end += tensor->bytes.size();
  }
  std::string text = io::header_text(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxHeaderBytes)
    throw IoError("write_safetensors: names and metadata need more than 100 MB; shorten the metadata");
  std::string bytes;
  bytes.reserve(kLengthBytes + text.size() + end);
  for (std::size_t i = 0; i < kLengthBytes; ++i) bytes += static_cast<char>(text.size() >> (8 * i) & 0xff);
  bytes += text;
  for (const NamedTensor* tensor : order)
    bytes.append(reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size());
  return bytes;
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  write_file(path, safetensors_bytes(tensors, metadata));
}

TensorFile parse_safetensors(std::string_view bytes, std::string_view where) {
  std::uint64_t length = 0;
  for (std::size_t i = std::min(bytes.size(), kLengthBytes); i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  if (bytes.size() < kLengthBytes || length > bytes.size() - kLengthBytes || length > kMaxHeaderBytes) {
    throw IoError(
        fmt::format("{}: is not a complete safetensors file: its {} bytes do not hold the header they "
                    "announce; copy or write it again",
                    where, bytes.size()));
  }
  const std::string_view text = bytes.substr(kLengthBytes, length);
  if (!text.starts_with('{'))
    throw IoError(fmt::format(
        "{}: is not a safetensors file: its header does not start with {{; is it the right file?", where));
  io::TensorHeader header = io::parse_tensor_header(text, where);
  const std::string_view data = bytes.substr(kLengthBytes + length);
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const io::TensorEntry& a, const io::TensorEntry& b) {
                     return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                   });
  check_offsets(header.entries, data.size(), where);
  TensorFile file{{}, std::move(header.metadata)};
  for (io::TensorEntry& entry : header.entries) {
    const auto* begin = reinterpret_cast<const std::byte*>(data.data());
    file.tensors.push_back({std::move(entry.name),
                            entry.dtype,
                            std::move(entry.shape),
                            {begin + entry.begin, begin + entry.end}});
  }
  return file;
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file(path), path.string());
}

}  // namespace nrec
