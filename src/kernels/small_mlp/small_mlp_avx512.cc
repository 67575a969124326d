// Run only where the processor has AVX-512F, too. No std containers, no inline functions shared with other files.

#include "kernels/small_mlp/small_mlp_table.h"

namespace nrec::small_mlp::avx512 {

constinit const Kernels kKernels = table_of<Zmm>("avx512");

}  // namespace nrec::small_mlp::avx512
