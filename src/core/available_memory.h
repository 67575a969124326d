#pragma once

#include <cstdint>

namespace nrec {

/// Bytes of memory that a new piece of work can count on: what the system says is available, and what the control group of
/// this process leaves, whichever is less. 0 when neither can be read.
std::uint64_t available_memory();

}  // namespace nrec
