#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nrec {

/// Element type of a tensor in a file.
enum class TensorType { f32, f64, i64 };

/// An array of weights with its name: raw little-endian values in C order.
struct NamedTensor {
  std::string name;
  TensorType dtype = TensorType::f32;
  std::vector<std::size_t> shape;
  std::vector<std::byte> bytes;
};

/// What a .safetensors file holds.
struct TensorFile {
  std::vector<NamedTensor> tensors;  // in the order of their bytes in the file
  std::map<std::string, std::string> metadata;

  /// Tensor called `name`, or nullptr.
  const NamedTensor* find(std::string_view name) const;
};

/// A tensor made from values.
NamedTensor make_tensor(std::string name, std::vector<std::size_t> shape, std::span<const float> values);
NamedTensor make_tensor(std::string name, std::vector<std::size_t> shape, std::span<const double> values);
NamedTensor make_tensor(std::string name, std::vector<std::size_t> shape,
                        std::span<const std::int64_t> values);

/// The values of a tensor.
/// Errors   ShapeError: the tensor has another element type
std::vector<float> f32_values(const NamedTensor& tensor);
std::vector<double> f64_values(const NamedTensor& tensor);
std::vector<std::int64_t> i64_values(const NamedTensor& tensor);

/// Bytes of a .safetensors file: 8 bytes little-endian length of the header, the header (JSON, padded by
/// spaces to a multiple of 8), the tensors. Types of 8 bytes come before those of 4, so that every tensor is
/// aligned; otherwise the order of `tensors` is kept. Equal input gives equal bytes.
///
/// Errors   ShapeError: shape and bytes differ; ConfigError: an empty, reserved or repeated name; IoError:
/// text that is not UTF-8 Source   safetensors format, https://github.com/huggingface/safetensors
std::string safetensors_bytes(std::span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

/// Writes safetensors_bytes with the care of write_file.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// The tensors and the metadata of a file.
///
/// Errors   IoError: no such layout, truncated, header longer than 100 MB, a key twice, a name with a control
///          character, shapes that do not match their bytes, tensors that overlap, leave gaps, are misaligned or
///          reach beyond the file; UnsupportedError: an element type other than F32, F64, I64
TensorFile read_safetensors(const std::filesystem::path& path);

/// The same from memory; `where` starts the messages.
TensorFile parse_safetensors(std::string_view bytes, std::string_view where);

}  // namespace nrec
