#pragma once

#include "nrec/core/array.h"
#include "nrec/core/thread_pool.h"
#include "nrec/priors/prior.h"
#include "nrec/training/standardiser.h"

namespace nrec {

/// theta -> standardised unbounded float32 rows, on all threads of the pool.
/// Shapes   theta [n, D] in; encoded [n, D] out
void encode_theta(const Prior& prior, const Standardiser& standardiser, MatrixView<const double> theta,
                  MatrixView<float> encoded, ThreadPool& pool);

}  // namespace nrec
