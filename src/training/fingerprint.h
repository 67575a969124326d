#pragma once

#include <string>

#include "training/training_data.h"

namespace nrec {

/// A name for exactly this training run: data, split, network shape, every option that changes results, seed and kernels.
/// Budgets and patience are left out: a resumed run may raise them. `success` names the rows that P(ok | theta) is learnt
/// from; empty: none failed.
std::string training_fingerprint(const TrainingData& data, const PairNetworkShape& shape,
                                 const TrainingOptions& options, std::uint64_t seed, std::string_view isa,
                                 const std::string& success);

}  // namespace nrec
