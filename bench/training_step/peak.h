#pragma once

#include <string_view>

#include "nrec/core/thread_pool.h"

namespace nrec::bench {

/// Multiply-adds in registers that all threads of the pool reach together with the vectors of an instruction set, float32 GFLOP/s (an
/// FMA is two): the best of several short bursts. 0 where there is no such loop (`ref`).
double fma_peak_gflops(std::string_view isa, ThreadPool& pool);

}  // namespace nrec::bench
