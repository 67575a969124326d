#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nrec {

/// Bytes of the valid UTF-8 character that `text` starts with; 0 when there is none.
std::size_t utf8_length(std::string_view text);

/// `text` with every byte that is not part of valid UTF-8 replaced by '?': file names and what programs say may hold
/// any bytes, JSON and databases may not.
std::string utf8_text(std::string_view text);

}  // namespace nrec
