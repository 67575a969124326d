#include "kernels/small_mlp/small_mlp_dispatch.h"

#include <string>

#include "nrec/core/error.h"
#include "nrec/kernels/dispatch.h"

namespace nrec {
namespace small_mlp {
namespace {

/// The table of a target other than best, or null where this build has none.
const Kernels* table_of(SmallMlpTarget target) {
#if defined(__x86_64__)
  if (target == SmallMlpTarget::avx512) return &avx512::kKernels;
  if (target == SmallMlpTarget::avx2) return &avx2::kKernels;
#endif
  return target == SmallMlpTarget::ref ? &ref::kKernels : nullptr;
}

}  // namespace

const Kernels& kernels_of(SmallMlpTarget target) {
  if (target == SmallMlpTarget::best) {
    for (const SmallMlpTarget one : {SmallMlpTarget::avx512, SmallMlpTarget::avx2}) {
      if (small_mlp_target_present(one)) return *table_of(one);
    }
    return ref::kKernels;
  }
  if (!small_mlp_target_present(target)) {
    throw UnsupportedError(std::string("SmallMlp: target = ") +
                           (target == SmallMlpTarget::avx2 ? "avx2 needs a processor with AVX2 and FMA"
                                                           : "avx512 needs a processor with AVX-512F") +
                           "; use best");
  }
  return *table_of(target);
}

}  // namespace small_mlp

bool small_mlp_target_present(SmallMlpTarget target) {
  if (target == SmallMlpTarget::avx2) return isa_status("avx2").available;
  return target != SmallMlpTarget::avx512 || isa_status("avx512").available;
}

}  // namespace nrec
