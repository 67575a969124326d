#pragma once

#include "nrec/kernels/pair_kernels.h"

namespace nrec::amx {

/// Entry of the table of pair kernels.
extern const RoundedLayer rounded_layer;

}  // namespace nrec::amx
