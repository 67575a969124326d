#pragma once

#include <string_view>

namespace nrec {

/// Processors that this process may use at once, at least 1: those that it may run on, or as many as the control group of a
/// container gives it time for, whichever is less.
int available_cores();

/// Processors that a control group gives time for, rounded up, from the text of its cpu.max ("200000 100000": microseconds of
/// time in microseconds of the clock); 0: no limit, or a text that is none.
int cores_of_quota(std::string_view text);

}  // namespace nrec
