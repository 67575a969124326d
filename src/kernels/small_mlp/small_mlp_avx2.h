#pragma once

// Shared by the AVX2 files only.

#include "kernels/small_mlp/small_mlp_kernels.h"

namespace nrec::small_mlp::avx2 {

void backward_logits(const BackwardLogits& op);
void backward_hidden(const BackwardHidden& op);
void hidden_weight_gradient(const HiddenWeightGradient& op);

}  // namespace nrec::small_mlp::avx2
