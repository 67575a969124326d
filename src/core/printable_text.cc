#include "nrec/core/printable_text.h"

#include <cstddef>

#include "core/utf8_text.h"

namespace nrec {

namespace {

constexpr std::string_view kLineControls = "\n\t";

/// Of the valid UTF-8 character that `bytes` start with.
bool is_control(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  return first < 0x20 || first == 0x7f || (first == 0xc2 && static_cast<unsigned char>(bytes[1]) < 0xa0);
}

/// Appends the first character of `bytes` and takes it off.
void append_printable(std::string& text, std::string_view& bytes, std::string_view kept_controls) {
  constexpr const char* kDigits = "0123456789abcdef";
  const std::size_t length = utf8_length(bytes);
  const std::string_view character = bytes.substr(0, length == 0 ? 1 : length);
  if (length > 0 && (!is_control(character) || kept_controls.find(character) != std::string_view::npos)) {
    text += character;
  } else {
    for (const char c : character) {
      const auto byte = static_cast<unsigned char>(c);
      text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  bytes.remove_prefix(character.size());
}

std::string printable(std::string_view bytes, std::string_view kept_controls) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) append_printable(text, bytes, kept_controls);
  return text;
}

}  // namespace

bool has_control_character(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length > 0 && is_control(text)) return true;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return false;
}

std::string printable_text(std::string_view bytes) { return printable(bytes, kLineControls); }

std::string one_line_text(std::string_view bytes) { return printable(bytes, {}); }

std::string quoted_text(std::string_view bytes) { return '"' + one_line_text(bytes) + '"'; }

std::string quoted_excerpt(std::string_view bytes) {
  constexpr std::size_t kMostLetters = 40;
  std::string text = "\"";
  while (!bytes.empty() && text.size() <= kMostLetters) append_printable(text, bytes, {});
  return text + (bytes.empty() ? "\"" : "\" ...");
}

}  // namespace nrec
