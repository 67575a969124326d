// Run only where the processor has AVX2 and FMA. No std containers, no inline functions shared with other files.

#include "kernels/small_mlp/small_mlp_table.h"

namespace nrec::small_mlp::avx2 {

constinit const Kernels kKernels = table_of<Ymm>("avx2");

}  // namespace nrec::small_mlp::avx2
