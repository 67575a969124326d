#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "nrec/core/array.h"
#include "nrec/core/thread_pool.h"
#include "nrec/networks/pair_network.h"

namespace nrec {

/// Rows of a mini-batch and the pairing of theta rows with x rows.
struct PairBatch {
  MatrixView<const float> theta;  // [T, dim_theta], standardised
  MatrixView<const float> x;      // [B, dim_x], standardised
  MatrixView<const std::uint32_t>
      candidates;  // [B, C]: rows of theta that x row b is paired with; column 0 its own
};

/// Loss of the C logits of x row number `row` of the batch and its gradient; called from worker threads, must be
/// thread-safe.
struct RowLoss {
  double (*call)(const void* context, std::size_t row, std::span<const float> logits,
                 std::span<float> d_logits);
  const void* context;
};

/// The hot loop behind the trainer: rows, pairing and loss go in; loss and gradient come out.
///
/// Equal bits for any number of threads: the pairs are cut into a fixed number of lanes, each lane sums its tiles in
/// order, and lanes are added in order. After the first call with given sizes, no call allocates.
class PairNetworkStep {
 public:
  virtual ~PairNetworkStep() = default;

  /// Mean loss of the batch and its gradient; batch norm uses this batch's statistics and updates the running ones.
  ///
  /// Shapes   gradient [network.weights().size()] out
  /// Errors   ShapeError: a dimension does not fit the network or candidates point outside theta
  virtual double loss_and_gradient(PairNetwork& network, const PairBatch& batch, const RowLoss& loss,
                                   std::span<float> gradient) = 0;

  /// Logits in evaluation mode (batch norm uses its running statistics).
  /// Shapes   logits [B, C] out
  virtual void logits(const PairNetwork& network, const PairBatch& batch, MatrixView<float> logits) = 0;

  /// Name of the kernels in use, e.g. "avx2".
  virtual std::string_view isa() const = 0;
};

/// The step for networks of any shape on the kernels of `isa` ("auto" = best available), working on `pool`, which must
/// outlive it. Errors as resolve_isa.
std::unique_ptr<PairNetworkStep> make_pair_step(std::string_view isa, ThreadPool& pool);

/// Log ratios of many thetas against one x, or against several independent rows of x; the x side is computed once.
class PairEvaluator {
 public:
  /// Shapes   x [dim_x], standardised. Copies what it needs; `pool` must outlive it.
  PairEvaluator(const PairNetwork& network, std::span<const float> x, std::string_view isa, ThreadPool& pool);
  /// Shapes   x [R, dim_x], standardised, R >= 1. Errors   ShapeError
  PairEvaluator(const PairNetwork& network, MatrixView<const float> x, std::string_view isa,
                ThreadPool& pool);
  ~PairEvaluator();
  PairEvaluator(PairEvaluator&&) noexcept;

  std::size_t num_rows() const;  // of x

  /// Sums of the logits over the rows of x: with one row, the logits.
  ///
  /// Shapes   theta [n, dim_theta] standardised; logits [n] out
  /// Errors   ShapeError
  /// Numerics a logit is float32, their sum is taken in float64 in the order of the rows; a theta's value depends on that theta
  ///          alone: equal bits in any batch and for any number of threads
  /// Cost     R times O(n (dim_theta H + 2 blocks H^2)); threads of the pool; not to be called from two threads at once
  void operator()(MatrixView<const float> theta, std::span<double> logits) const;

  /// The same with their gradients with respect to the standardised theta; batch norm uses its running statistics.
  ///
  /// Shapes   logits [n] out, the bits of operator(); d_theta [n, dim_theta] out
  /// Cost     twice that of operator(); memory for the way back is taken at the first call
  void with_gradient(MatrixView<const float> theta, std::span<double> logits,
                     MatrixView<double> d_theta) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nrec
