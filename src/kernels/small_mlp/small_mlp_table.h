#pragma once

#include "kernels/small_mlp/small_mlp_masked_products.h"
#include "kernels/small_mlp/small_mlp_products.h"

namespace nrec::small_mlp {
namespace {

/// All operations on registers V.
template <class V>
constexpr Kernels table_of(const char* name) {
  return {.name = name,
          .lanes = V::kWidth,
          .forward_hidden = forward_hidden<V>,
          .forward_logits = forward_logits,
          .backward_logits = backward_logits<V>,
          .backward_hidden = backward_hidden<V>,
          .hidden_weight_gradient = hidden_weight_gradient<V>,
          .weight_gradient = weight_gradient<V>,
          .column_sums = column_sums<V>,
          .transpose = transpose,
          .adam_step = adam_step<V>};
}

}  // namespace
}  // namespace nrec::small_mlp
