#include "simulation/external/message_tail.h"

#include <fmt/format.h>

namespace nrec::simulation {
namespace {

// Bytes of the valid UTF-8 sequence at the start of `bytes`, 0 when there is none.
std::size_t utf8_length(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
  if (length == 0 || bytes.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and numbers beyond U+10FFFF are not characters.
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) > 0x9f) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  return first < 0x20 || first == 0x7f ||
         (first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);  // C1 controls
}

void append_printable(std::string& text, std::string_view& bytes, std::string_view kept_controls) {
  const std::size_t length = utf8_length(bytes);
  const std::string_view character = bytes.substr(0, length == 0 ? 1 : length);
  if (length > 0 && (!is_control(character) || kept_controls.find(character) != std::string_view::npos)) {
    text += character;
  } else {
    for (const char byte : character) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  bytes.remove_prefix(character.size());
}

}  // namespace

std::string printable(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) append_printable(text, bytes, "\n\t");
  return text;
}

bool is_numbers_only(std::string_view bytes) {
  return bytes.find_first_not_of("0123456789+-.eEnaif \t\r\n") == std::string_view::npos;
}

std::string quoted_excerpt(std::string_view bytes) {
  constexpr std::size_t kMostLetters = 40;
  std::string text = "\"";
  while (!bytes.empty() && text.size() <= kMostLetters) append_printable(text, bytes, "");
  return text + (bytes.empty() ? "\"" : "\" ...");
}

void MessageTail::add(std::string_view bytes) {
  if (bytes.size() > kBytes) {
    kept_.clear();
    is_cut_ = true;
    bytes.remove_prefix(bytes.size() - kBytes);
  }
  kept_ += bytes;
  if (kept_.size() > 2 * kBytes) {
    kept_.erase(0, kept_.size() - kBytes);
    is_cut_ = true;
  }
}

std::string MessageTail::text() const {
  std::string_view tail = kept_;
  bool is_cut = is_cut_;
  if (tail.size() > kBytes) {
    tail.remove_prefix(tail.size() - kBytes);
    is_cut = true;
  }
  const std::size_t newline = tail.find('\n');
  if (is_cut && newline != std::string_view::npos && newline + 1 < tail.size())
    tail.remove_prefix(newline + 1);
  return printable(tail);
}

}  // namespace nrec::simulation
