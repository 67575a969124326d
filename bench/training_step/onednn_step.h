#pragma once

#include <memory>

#include "nrec/core/thread_pool.h"
#include "nrec/kernels/pair_kernels.h"
#include "nrec/networks/pair_step.h"

namespace nrec::bench {

/// Whether the program was built with oneDNN.
bool has_onednn();
/// Whether the contender knows a norm at a width: layer norm has no room for padding columns.
inline bool can_compose(std::size_t hidden, Norm norm) {
  return norm == Norm::none || (norm == Norm::layer && hidden % kFeatureBlock == 0);
}

/// The step composed of oneDNN's primitives, tile by tile in cache on the threads of `pool` (oneDNN itself with one thread each), the
/// input layer factored as in nrec's own. Layer norm or none. logits() is not there.
///
/// Errors   UnsupportedError: built without oneDNN; batch norm, which would need passes over the whole mini-batch
std::unique_ptr<PairNetworkStep> make_onednn_step(Norm norm, ThreadPool& pool);

}  // namespace nrec::bench
