#pragma once

// The operations of one training step of a small perceptron, as a table of plain functions: one table per
// instruction set. Included by files with their own -m flags, so it holds plain structs only.
//
// Layout: every array with hidden columns is row-major with `ld` floats per row, rows aligned to the table's vectors,
// `cols` = hidden width rounded up to whole vectors. Columns beyond the true width are zero and stay zero.

#include <cstddef>
#include <cstdint>

namespace nrec::small_mlp {

inline constexpr std::size_t kTableFloats =
    8192;  // at most: subset sums of several groups of four rows, in the L1 cache

/// dst = max(0, src weights + bias).   src [rows, inner], weights [inner, cols], dst [rows, cols]
struct ForwardHidden {
  std::size_t rows, inner, cols, ld;
  const float* src;
  std::size_t ld_src;
  const float* weights;
  const float* bias;
  float* dst;
};

/// logits = src . weights + bias.   src [rows, cols], weights [cols]
struct ForwardLogits {
  std::size_t rows, cols, ld;
  const float* src;
  const float* weights;
  float bias;
  float* logits;
};

/// The output layer has one unit, so the gradient at the last hidden layer is an outer product under a 0/1
/// mask:
///   diff_dst[i][j] = diff_logits[i] weights[j] active[i][j],   active = dst > 0
/// It is never stored. The three operations below use that a product with a 0/1 matrix needs no
/// multiplication: the sums of all 16 subsets of four rows are tabulated once, and every four bits of the
/// mask pick one of them. `active` holds those bits in the form each operation wants.
struct ActiveBits {
  std::uint8_t* by_row;     // [rows, cols / 8]: bit j % 8 of byte (i, j / 8) is active[i][j]
  std::int32_t* by_column;  // [(rows + 3) / 4, ld]: bit i % 4 of number (i / 4, j) is active[i][j]
};

/// diff_weights = dst^T diff_logits; diff_bias = column sums of diff_dst; fills `active` (ref leaves it
/// alone).
struct BackwardLogits {
  std::size_t rows, cols, ld;
  const float* dst;
  const float* weights;
  const float* diff_logits;
  float* diff_weights;
  float* diff_bias;
  ActiveBits active;
};

/// diff_src = (diff_dst weights_t) where src > 0.   weights_t [cols, cols], `table`: scratch of kTableFloats
struct BackwardHidden {
  std::size_t rows, cols, ld;
  const float* dst;
  const float* weights;
  const float* diff_logits;
  ActiveBits active;
  const float* weights_t;
  const float* src;
  float* diff_src;
  float* table;
};

/// diff_weights_t = diff_dst^T src.   src [rows, cols], diff_weights_t [cols, cols], `table`: scratch of
/// kTableFloats
struct HiddenWeightGradient {
  std::size_t rows, cols, ld;
  const float* dst;
  const float* weights;
  const float* diff_logits;
  ActiveBits active;
  const float* src;
  float* diff_weights_t;
  float* table;
};

/// diff_weights = src^T diff_dst.   src [rows, inner], diff_dst [rows, cols], diff_weights [inner, cols]
struct WeightGradient {
  std::size_t rows, inner, cols, ld;
  const float* src;
  std::size_t ld_src;
  const float* diff_dst;
  float* diff_weights;
};

/// sums[j] = sum over rows of src[., j].
struct ColumnSums {
  std::size_t rows, cols, ld;
  const float* src;
  float* sums;
};

/// dst = transpose of the square src.
struct Transpose {
  std::size_t size, ld;  // size: a multiple of 8
  const float* src;
  float* dst;
};

/// One Adam step on `count` weights (whole vectors), with g = (grad + weight_penalty w) scale:
/// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, w -= step m / (sqrt(v) + epsilon).
struct AdamStep {
  std::size_t count;
  float weight_penalty, scale, step, beta1, one_minus_beta1, beta2, one_minus_beta2, epsilon;
  const float* grad;
  float* weights;
  float* m;
  float* v;
};

struct Kernels {
  const char* name;
  std::size_t lanes;  // of a vector: a multiple of 8
  void (*forward_hidden)(const ForwardHidden&);
  void (*forward_logits)(const ForwardLogits&);
  void (*backward_logits)(const BackwardLogits&);
  void (*backward_hidden)(const BackwardHidden&);
  void (*hidden_weight_gradient)(const HiddenWeightGradient&);
  void (*weight_gradient)(const WeightGradient&);
  void (*column_sums)(const ColumnSums&);
  void (*transpose)(const Transpose&);
  /// Returns the sum of squares of the weights before the step.
  double (*adam_step)(const AdamStep&);
};

namespace ref {
/// Scalar code, sums in double: the truth the others are checked against.
extern const Kernels kKernels;
}  // namespace ref

namespace avx2 {
/// AVX2 and FMA, sums in float32.
extern const Kernels kKernels;
}  // namespace avx2

namespace avx512 {
/// AVX-512F, sums in float32; the same bits as avx2.
extern const Kernels kKernels;
}  // namespace avx512

}  // namespace nrec::small_mlp
