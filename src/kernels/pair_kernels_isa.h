#pragma once

#include <cstddef>

#include "nrec/kernels/pair_kernels.h"

// One function per instruction set; each lives in its own file with its own compiler flags.
namespace nrec::ref {
const PairKernels& pair_kernels_table();
}
namespace nrec::avx2 {
const PairKernels& pair_kernels_table();
}
namespace nrec::avx512 {
const PairKernels& pair_kernels_table();
/// That of the table.
void layer_norm_moments(const float* z, std::size_t rows, std::size_t width, std::size_t features, float eps,
                        float* mean, float* rstd);
}  // namespace nrec::avx512
namespace nrec::amx {
const PairKernels& pair_kernels_table();
}
/// Precision bf16 on the float32 products of a table.
namespace nrec::rounded {
const PairKernels& ref_table();
const PairKernels& avx2_table();
}  // namespace nrec::rounded
