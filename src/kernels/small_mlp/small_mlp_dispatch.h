#pragma once

#include "kernels/small_mlp/small_mlp_kernels.h"
#include "nrec/kernels/small_mlp.h"

namespace nrec::small_mlp {

/// Table of `target`. Errors: UnsupportedError: not present on this processor or not in this build.
const Kernels& kernels_of(SmallMlpTarget target);

}  // namespace nrec::small_mlp
