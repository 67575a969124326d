#pragma once

#include <cstdint>
#include <span>

#include "nrec/core/array.h"
#include "nrec/core/thread_pool.h"
#include "nrec/diagnostics/weighted_auc.h"

namespace nrec {

/// Whether a small network can tell rows of label 1 from weighted rows of label 0 on rows it has not seen.
///
/// Five-fold: row i of both labels is in one fold. A network d -> 32 -> 32 -> 1 is trained on four fifths, with a fifth of them held
/// back to stop in time; it sees zeros resampled by their weights, anew in every epoch, because SmallMlp has no weights and a
/// classifier need not be trained on the weights for its weighted area to be valid. The score is computed by rank within each fold, with
/// the weights.
///
/// Columns are scaled by median and quartiles of all rows and clipped at 10.
///
/// Shapes   ones [n, F], zeros [n, F], weights [n] of the zeros
/// Errors   ShapeError: shapes differ, no columns, fewer than 50 rows; DomainError: values that are nan; weights as weighted_auc()
/// Numerics float32 training; the same bits for any number of threads
/// Cost     about 40 epochs of 12 (F + 32) 32 n flop a fold; 2,000 rows: 0.05 s
/// Source   [Miller2022, sec. 3.3], [LopezPaz2017]
WeightedAuc classifier_check(MatrixView<const double> ones, MatrixView<const double> zeros,
                             std::span<const double> weights, std::uint64_t seed, ThreadPool& pool);

}  // namespace nrec
