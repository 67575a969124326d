#include "io/bzip2.h"

#include <bzlib.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "nrec/core/error.h"

namespace nrec::io {

namespace {

// Closes the decompressor however the function ends.
struct Decompressor {
  bz_stream stream{};
  Decompressor() { require_internal(BZ2_bzDecompressInit(&stream, 0, 0) == BZ_OK, "bzip2 does not start"); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  ~Decompressor() { BZ2_bzDecompressEnd(&stream); }
};

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

// Inflates the first stream of `bytes` onto `out` and drops it from `bytes`.
void inflate_one(std::string_view& bytes, std::string& out, std::uint64_t max_bytes, std::string_view where) {
  Decompressor decompressor;
  bz_stream& stream = decompressor.stream;
  std::string chunk(kChunkBytes, '\0');
  for (int code = BZ_OK; code != BZ_STREAM_END;) {
    const auto given =
        static_cast<unsigned>(std::min<std::size_t>(bytes.size(), std::numeric_limits<unsigned>::max()));
    stream.next_in = const_cast<char*>(bytes.data());  // the library does not write to it
    stream.avail_in = given;
    stream.next_out = chunk.data();
    stream.avail_out = static_cast<unsigned>(chunk.size());
    code = BZ2_bzDecompress(&stream);
    const std::size_t made = chunk.size() - stream.avail_out;
    const std::size_t used = given - stream.avail_in;
    if (code != BZ_OK && code != BZ_STREAM_END) {
      throw IoError(fmt::format("{}: the bzip2 data is damaged (code {}); copy or compress the file again",
                                where, code));
    }
    if (code == BZ_OK && made == 0 && used == 0) {
      throw IoError(fmt::format(
          "{}: the bzip2 data ends too early; it is truncated, copy or compress the file again", where));
    }
    if (made > max_bytes - out.size()) {
      throw IoError(
          fmt::format("{}: inflates to more than the {} bytes allowed; split the table", where, max_bytes));
    }
    out.append(chunk, 0, made);
    bytes.remove_prefix(used);
  }
}

}  // namespace

bool is_bzip2(std::string_view bytes) {
  using std::string_view_literals::operator""sv;
  if (bytes.size() < 10 || !bytes.starts_with("BZh") || bytes[3] < '1' || bytes[3] > '9') return false;
  const std::string_view block = bytes.substr(4, 6);
  return block == "\x31\x41\x59\x26\x53\x59"sv || block == "\x17\x72\x45\x38\x50\x90"sv;
}

std::string inflate_bzip2(std::string_view bytes, std::uint64_t max_bytes, std::string_view where) {
  std::string out;
  while (!bytes.empty()) {
    if (!bytes.starts_with("BZh"))
      throw IoError(fmt::format("{}: bytes follow the bzip2 data; copy or compress the file again", where));
    inflate_one(bytes, out, max_bytes, where);
  }
  return out;
}

}  // namespace nrec::io
