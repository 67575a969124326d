#pragma once

#include <string_view>
#include <vector>

#include "nrec/core/thread_pool.h"

namespace nrec::bench {

/// Multiply-adds in registers that all threads of the pool reach together, GFLOP/s (an FMA is two), in each of several short bursts:
/// float32 with the vectors of an instruction set, or bf16 products of tiles for `amx`. Empty where there is no such loop (`ref`).
/// Tiles must be allowed: pair_kernels("amx") has been called.
std::vector<double> peak_bursts_gflops(std::string_view isa, ThreadPool& pool);

}  // namespace nrec::bench
