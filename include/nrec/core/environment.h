#pragma once

#include <string>
#include <vector>

namespace nrec {

/// Value of the environment variable NREC_ISA, the instruction set of the kernels when nothing else names
/// one; "" if unset. This file is the only place that reads the environment. Not to be called while another
/// thread changes it.
std::string environment_isa();

/// All entries "NAME=value" of the environment in their order: what programs that we start are given.
/// Not to be called while another thread changes it.
std::vector<std::string> environment_entries();

}  // namespace nrec
