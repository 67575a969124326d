#include "io/safetensors_header.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "io/json_error.h"
#include "io/sizes.h"
#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"

namespace nrec::io {

namespace {

using Json = nlohmann::json;
constexpr const char* kMetadataKey = "__metadata__";

[[noreturn]] void fail(std::string_view where, std::string_view what) {
  throw IoError(
      fmt::format("{}: the safetensors header is damaged: {}; copy or write the file again", where, what));
}

// Parses with two rules the library does not have: a key appears once, and nesting ends at the three levels
// of the format.
Json parse_strict(std::string_view text, std::string_view where) {
  std::vector<std::set<std::string>> keys;
  constexpr int kMostNested = 3;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth >= kMostNested &&
        (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start)) {
      fail(where, "it is nested too deeply");
    }
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      fail(where, fmt::format("the key {} appears twice", quoted_text(parsed.get<std::string>())));
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::parse_error& error) {
    throw_json_error(text, error.byte, error.what(), where);
  } catch (const Json::exception&) {
    fail(where, "a number is out of range");
  }
}

TensorType parse_type(const Json& value, const std::string& name, std::string_view where) {
  const std::string word = value.is_string() ? value.get<std::string>() : value.dump();
  for (const TensorType type : {TensorType::f32, TensorType::f64, TensorType::i64}) {
    if (word == tensor_type_name(type)) return type;
  }
  throw UnsupportedError(
      fmt::format("{}: tensor \"{}\" has type {}; F32, F64 and I64 can be read, convert it before saving",
                  where, name, word));
}

std::vector<std::size_t> parse_sizes(const Json& value, const std::string& name, std::string_view key,
                                     std::string_view where) {
  std::vector<std::size_t> sizes;
  if (!value.is_array()) fail(where, fmt::format("{} of tensor \"{}\" is no list", key, name));
  for (const Json& item : value) {
    if (!item.is_number_unsigned())
      fail(where, fmt::format("{} of tensor \"{}\" holds something other than sizes", key, name));
    sizes.push_back(item.get<std::size_t>());
  }
  return sizes;
}

TensorEntry parse_entry(const std::string& name, const Json& value, std::string_view where) {
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets")) {
    fail(where, fmt::format("tensor \"{}\" needs exactly dtype, shape and data_offsets", name));
  }
  TensorEntry entry{name, parse_type(value["dtype"], name, where),
                    parse_sizes(value["shape"], name, "shape", where)};
  if (entry.shape.size() > kMaxDimensions)
    fail(where, fmt::format("tensor \"{}\" has more than {} dimensions", name, kMaxDimensions));
  const auto offsets = parse_sizes(value["data_offsets"], name, "data_offsets", where);
  if (offsets.size() != 2) fail(where, fmt::format("data_offsets of tensor \"{}\" are not a pair", name));
  entry.begin = offsets[0];
  entry.end = offsets[1];
  return entry;
}

}  // namespace

const char* tensor_type_name(TensorType type) {
  switch (type) {
    case TensorType::f32:
      return "F32";
    case TensorType::f64:
      return "F64";
    case TensorType::i64:
      return "I64";
  }
  throw InternalError("unknown tensor type");
}

std::size_t tensor_type_bytes(TensorType type) { return type == TensorType::f32 ? 4 : 8; }

std::string header_text(const TensorHeader& header) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  auto& entries = json.get_ref<nlohmann::ordered_json::object_t&>();
  if (!header.metadata.empty()) entries.push_back({kMetadataKey, header.metadata});
  for (const TensorEntry& entry : header.entries) {
    nlohmann::ordered_json described;
    described["dtype"] = tensor_type_name(entry.dtype);
    described["shape"] = entry.shape;
    described["data_offsets"] = {entry.begin, entry.end};
    entries.push_back({entry.name, std::move(described)});
  }
  try {
    return json.dump();
  } catch (const Json::exception&) {
    throw IoError("write_safetensors: a name or a metadata text is not UTF-8; convert it first");
  }
}

TensorHeader parse_tensor_header(std::string_view text, std::string_view where) {
  const Json json = parse_strict(text, where);
  if (!json.is_object()) fail(where, "it is no object {...}");
  TensorHeader header;
  for (const auto& [name, value] : json.items()) {
    if (has_control_character(name))
      fail(where, fmt::format("the name {} holds a control character", quoted_text(name)));
    if (name != kMetadataKey) {
      header.entries.push_back(parse_entry(name, value, where));
      continue;
    }
    if (!value.is_object()) fail(where, "__metadata__ is no object {...}");
    for (const auto& [key, item] : value.items()) {
      if (!item.is_string()) fail(where, fmt::format("{} of __metadata__ is no text", quoted_text(key)));
      header.metadata[key] = item.get<std::string>();
    }
  }
  return header;
}

}  // namespace nrec::io
