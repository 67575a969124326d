#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nrec::io {

// True when the bytes start like a bzip2 stream (its magic and the magic of its first block).
bool is_bzip2(std::string_view bytes);

// Inflated content of one or more bzip2 streams in a row.
// Errors: IoError: damaged, truncated, more than max_bytes come out.
std::string inflate_bzip2(std::string_view bytes, std::uint64_t max_bytes, std::string_view where);

}  // namespace nrec::io
