#pragma once

#include <string_view>
#include <vector>

#include "nrec/core/thread_pool.h"

namespace nrec::bench {

/// Multiply-adds in registers that all threads of the pool reach together with the vectors of an instruction set, float32 GFLOP/s (an
/// FMA is two), in each of several short bursts. Empty where there is no such loop (`ref`).
std::vector<double> fma_bursts_gflops(std::string_view isa, ThreadPool& pool);

}  // namespace nrec::bench
