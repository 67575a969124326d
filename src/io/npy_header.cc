#include "io/npy_header.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>

#include "io/sizes.h"
#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"

namespace nrec::io {

namespace {

// NumPy itself refuses longer headers (numpy.lib.format, max_header_size).
constexpr std::size_t kMaxHeaderBytes = 10000;

// Reads the dictionary of a header, a small part of Python's syntax. Nothing is evaluated.
class HeaderScanner {
 public:
  HeaderScanner(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  NpyHeader scan() {
    NpyHeader header;
    bool seen_descr = false, seen_order = false, seen_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        mark(seen_descr, key);
        header.dtype = descr();
      } else if (key == "fortran_order") {
        mark(seen_order, key);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        mark(seen_shape, key);
        header.shape = shape();
      } else {
        fail("unknown key " + quoted_excerpt(key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (position_ != text_.size()) fail("text after the closing brace");
    if (!seen_descr || !seen_order || !seen_shape)
      fail("one of the keys descr, fortran_order, shape is missing");
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw IoError(fmt::format(
        "{}: the .npy header is damaged: {} (near character {}); write the file again with numpy.save",
        where_, what, position_));
  }
  void mark(bool& seen, std::string_view key) const {
    if (seen) fail(fmt::format("key \"{}\" appears twice", key));
    seen = true;
  }
  void skip_space() {
    while (position_ < text_.size() && std::strchr(" \t\n\r", text_[position_]) && text_[position_] != '\0')
      ++position_;
  }
  bool accept(char wanted) {
    skip_space();
    if (position_ >= text_.size() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(fmt::format("'{}' expected", wanted));
  }
  std::string quoted() {
    skip_space();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    if (quote != '\'' && quote != '"') fail("a quoted word expected");
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) fail("a quote is not closed");
    std::string word(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return word;
  }
  std::string descr() {
    skip_space();
    if (position_ < text_.size() && (text_[position_] == '[' || text_[position_] == '(')) {
      throw UnsupportedError(fmt::format(
          "{}: is a structured array (several named fields); save its fields as one plain float array",
          where_));
    }
    return quoted();
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.substr(position_).starts_with(word)) {
        position_ += std::strlen(word);
        return value;
      }
    }
    fail("True or False expected");
  }
  std::vector<std::size_t> shape() {
    std::vector<std::size_t> result;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::size_t extent = 0;
      const char* begin = text_.data() + position_;
      const auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), extent);
      if (code != std::errc()) fail("the shape holds something other than sizes");
      position_ += static_cast<std::size_t>(end - begin);
      if (position_ < text_.size() && text_[position_] == 'L') ++position_;  // Python 2 wrote 10L
      result.push_back(extent);
      if (result.size() > kMaxDimensions) fail(fmt::format("more than {} dimensions", kMaxDimensions));
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }

  std::string_view text_;
  std::string_view where_;
  std::size_t position_ = 0;
};

const char* reason_against(char kind, std::size_t bytes) {
  switch (kind) {
    case 'O':
      return "holds Python objects, and reading them would run code; convert with numpy.asarray(a, "
             "dtype=float)";
    case 'S':
    case 'a':
    case 'U':
      return "holds text; convert with a.astype(float)";
    case 'V':
      return "holds raw records (void); save its fields as one plain float array";
    case 'M':
    case 'm':
      return "holds dates or durations; convert to seconds or days as float first";
    case 'c':
      return "holds complex numbers; save real and imaginary parts as separate columns";
    case 'f':
      return bytes > 8
                 ? "holds long doubles, whose layout differs between machines; convert with a.astype(float)"
                 : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

NpyType parse_npy_type(std::string_view dtype, std::string_view where) {
  std::string_view rest = dtype;
  char order = '=';
  if (!rest.empty() && std::strchr("<>|=", rest[0]) && rest[0] != '\0') {
    order = rest[0];
    rest.remove_prefix(1);
  }
  const char kind = rest.empty() ? '\0' : rest[0];
  std::size_t bytes = 0;
  if (rest.size() > 1) std::from_chars(rest.data() + 1, rest.data() + rest.size(), bytes);
  if (const char* reason = reason_against(kind, bytes))
    throw UnsupportedError(fmt::format("{}: type {} {}", where, quoted_excerpt(dtype), reason));

  const std::string canonical = fmt::format("{}{}", kind, bytes);
  const bool whole = kind == 'i' || kind == 'u';
  const bool known = (kind == 'b' && bytes == 1) ||
                     (whole && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)) ||
                     (kind == 'f' && (bytes == 2 || bytes == 4 || bytes == 8));
  if (!known || canonical != rest) {
    throw IoError(
        fmt::format("{}: unknown element type {}; bool, integers and float16, float32, float64 can be read",
                    where, quoted_excerpt(dtype)));
  }
  if (bytes > 1 && order != '<' && order != '>') {
    throw IoError(fmt::format("{}: type {} does not say its byte order; write the file again with numpy.save",
                              where, quoted_excerpt(dtype)));
  }
  return {kind, bytes, order == '>'};
}

NpyHeader read_npy_header(ByteSource& source, std::string_view where) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  std::array<char, 8> start{};
  if (source.read(start) != start.size() || std::string_view(start.data(), kMagic.size()) != kMagic) {
    throw IoError(
        fmt::format("{}: is not a .npy file (its first bytes differ); write it with numpy.save", where));
  }
  const int major = static_cast<unsigned char>(start[6]);
  const int minor = static_cast<unsigned char>(start[7]);
  if (major < 1 || major > 3 || minor != 0) {
    throw IoError(fmt::format("{}: .npy version {}.{} is unknown; versions 1.0, 2.0 and 3.0 can be read",
                              where, major, minor));
  }
  std::array<char, 4> length_bytes{};
  const std::size_t width = major == 1 ? 2 : 4;
  std::size_t length = 0;
  const bool complete = source.read(std::span(length_bytes).first(width)) == width;
  for (std::size_t i = width; i-- > 0;) length = length << 8 | static_cast<unsigned char>(length_bytes[i]);
  const std::size_t before = start.size() + width;
  if (!complete || source.size() < before + length) {
    throw IoError(fmt::format(
        "{}: the file ends inside its .npy header; it is truncated, copy or write it again", where));
  }
  if (length > kMaxHeaderBytes) {
    throw IoError(
        fmt::format("{}: its .npy header has {} bytes, more than the {} allowed; save a plain numeric array",
                    where, length, kMaxHeaderBytes));
  }
  std::string text(length, '\0');
  if (source.read(text) != length) {
    throw IoError(fmt::format(
        "{}: the file ends inside its .npy header; it is truncated, copy or write it again", where));
  }
  NpyHeader header = HeaderScanner(text, where).scan();
  header.bytes_before_data = before + length;
  return header;
}

}  // namespace nrec::io
