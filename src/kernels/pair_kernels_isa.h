#pragma once

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
}
