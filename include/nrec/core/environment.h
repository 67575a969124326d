#pragma once

#include <string>

namespace nrec {

/// Value of the environment variable NREC_ISA, the instruction set of the kernels when nothing else names
/// one; "" if unset. The only place that reads the environment. Not to be called while another thread changes
/// it.
std::string environment_isa();

}  // namespace nrec
