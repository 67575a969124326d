#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nrec {

/// Value of the environment variable NREC_ISA, the instruction set of the kernels when nothing else names
/// one; "" if unset. This file is the only place that reads the environment. Not to be called while another
/// thread changes it.
std::string environment_isa();

/// Which task of a Slurm job array this process is.
struct ArrayTask {
  std::uint64_t index = 0;  // from 0
  std::uint64_t count = 1;
};
/// From SLURM_ARRAY_TASK_ID, _COUNT, _MIN and _STEP; empty outside of arrays; count = 0 when the numbers are no unbroken
/// sequence. Same warning.
std::optional<ArrayTask> environment_array_task();

/// All entries "NAME=value" of the environment in their order: what programs that we start are given.
/// Not to be called while another thread changes it.
std::vector<std::string> environment_entries();

}  // namespace nrec
