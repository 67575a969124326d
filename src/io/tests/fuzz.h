#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "nrec/core/error.h"

namespace nrec {

// Feeds damaged copies of `bytes` to `read`: cut after each of the first `depth` bytes, and each of these
// bytes replaced in several ways. `read` may succeed on a replaced byte (it can be a legal one) but throws
// nothing except Error. Returns the number of refusals.
inline int count_refusals(const std::string& bytes, std::size_t depth,
                          const std::function<void(const std::string&)>& read) {
  int refusals = 0;
  const auto attempt = [&](const std::string& damaged, bool must_fail, std::size_t at) {
    try {
      read(damaged);
      EXPECT_FALSE(must_fail) << "accepted although cut at byte " << at;
    } catch (const Error&) {
      ++refusals;
    }
  };
  const std::size_t last = std::min(depth, bytes.size());
  for (std::size_t at = 0; at < last; ++at) {
    attempt(bytes.substr(0, at), true, at);
    for (const int replacement : {0x00, 0x7f, 0x80, 0xff, bytes[at] ^ 0x01, bytes[at] ^ 0x10,
                                  static_cast<int>('9'), static_cast<int>('"')}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(replacement);
      attempt(damaged, false, at);
    }
  }
  return refusals;
}

}  // namespace nrec
