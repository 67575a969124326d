#pragma once

#include <string>
#include <string_view>

namespace nrec {

/// `text` with every byte that is not part of valid UTF-8 replaced by '?': file names and what programs say may hold
/// any bytes, JSON and databases may not.
std::string utf8_text(std::string_view text);

}  // namespace nrec
