#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nrec/io/safetensors.h"

namespace nrec::io {

// One tensor as the header describes it.
struct TensorEntry {
  std::string name;
  TensorType dtype = TensorType::f32;
  std::vector<std::size_t> shape;
  std::size_t begin = 0, end = 0;  // bytes, from the start of the data
};

struct TensorHeader {
  std::vector<TensorEntry> entries;
  std::map<std::string, std::string> metadata;
};

const char* tensor_type_name(TensorType type);  // "F32"
std::size_t tensor_type_bytes(TensorType type);

// JSON text of a header, and back. Whether offsets make sense is for the caller to check.
std::string header_text(const TensorHeader& header);
TensorHeader parse_tensor_header(std::string_view text, std::string_view where);

}  // namespace nrec::io
