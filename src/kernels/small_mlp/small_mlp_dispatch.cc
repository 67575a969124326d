#include "kernels/small_mlp/small_mlp_dispatch.h"

#include "nrec/core/error.h"

namespace nrec {
namespace small_mlp {
namespace {

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

}  // namespace

const Kernels& kernels_of(SmallMlpTarget target) {
  if (target == SmallMlpTarget::ref) return ref::kKernels;
#if defined(__x86_64__)
  if (has_avx2()) return avx2::kKernels;
#endif
  if (target == SmallMlpTarget::best) return ref::kKernels;
  throw UnsupportedError("SmallMlp: target = avx2 needs a processor with AVX2 and FMA; use best or ref");
}

}  // namespace small_mlp

bool small_mlp_target_present(SmallMlpTarget target) {
  return target != SmallMlpTarget::avx2 || small_mlp::has_avx2();
}

}  // namespace nrec
