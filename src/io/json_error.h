#pragma once

#include <cstddef>
#include <string_view>

namespace nrec::io {

// Throws IoError with line and column of byte `position` (from 1) of `text`; `reason` is the parser's own
// text.
[[noreturn]] void throw_json_error(std::string_view text, std::size_t position, std::string_view reason,
                                   std::string_view where);

}  // namespace nrec::io
