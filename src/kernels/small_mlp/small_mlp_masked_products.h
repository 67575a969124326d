#pragma once

// The operations around the output layer, as products with a 0/1 matrix: see ActiveBits. Order and rules as in small_mlp_products.h.

#include <utility>

#include "kernels/small_mlp/small_mlp_kernels.h"
#include "kernels/small_mlp/small_mlp_vectors.h"

namespace nrec::small_mlp {
namespace {

constexpr std::size_t divided_up(std::size_t count, std::size_t step) { return (count + step - 1) / step; }

// Four rows at a time, because by_column packs four rows into one number; rows beyond the last count as
// inactive.
template <class V, int kVectors>
inline void backward_logits_columns(const BackwardLogits& op, std::size_t n) {
  typename V::Floats weight_sum[kVectors], active_sum[kVectors];
  for (int j = 0; j < kVectors; ++j) weight_sum[j] = active_sum[j] = V::zero();
  for (std::size_t i = 0; i < op.rows; i += 4) {
    typename V::Numbers bits[kVectors];
    for (int j = 0; j < kVectors; ++j) bits[j] = V::no_bits();
    const std::size_t count = op.rows - i < 4 ? op.rows - i : 4;
    for (std::size_t r = 0; r < count; ++r) {
      const typename V::Floats diff_logit = V::all(op.diff_logits[i + r]);
#pragma GCC unroll 8
      for (std::size_t j = 0; j < kVectors; ++j) {
        const typename V::Floats dst = V::load(op.dst + (i + r) * op.ld + n + V::kWidth * j);
        const typename V::Mask active = V::positive(dst);
        V::store_bits(op.active.by_row + ((i + r) * op.cols + n + V::kWidth * j) / 8, active);
        bits[j] = V::with_bit(bits[j], active, 1 << r);
        active_sum[j] = V::add(active_sum[j], V::where(active, diff_logit));
        weight_sum[j] = V::fmadd(dst, diff_logit, weight_sum[j]);
      }
    }
    for (std::size_t j = 0; j < kVectors; ++j)
      V::store(op.active.by_column + i / 4 * op.ld + n + V::kWidth * j, bits[j]);
  }
  for (std::size_t j = 0; j < kVectors; ++j) {
    const std::size_t at = n + V::kWidth * j;
    V::store(op.diff_weights + at, weight_sum[j]);
    V::store(op.diff_bias + at, V::mul(active_sum[j], V::load(op.weights + at)));
  }
}

// table[s] = sum of factor[r] rows[r] over the bits r of s, for kVectors vectors of columns; 16 kVectors
// vectors.
template <class V, int kVectors>
inline void subset_sums(const float* const rows[4], const float factor[4], float* table) {
  for (std::size_t j = 0; j < kVectors; ++j) {
    typename V::Floats sums[16];
    sums[0] = V::zero();
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const typename V::Floats row = V::mul(V::all(factor[r]), V::load(rows[r] + V::kWidth * j));
#pragma GCC unroll 8
      for (int s = 0; s < 1 << r; ++s) sums[(1 << r) + s] = V::add(sums[s], row);
    }
#pragma GCC unroll 16
    for (std::size_t s = 0; s < 16; ++s) V::store(table + V::kWidth * (s * kVectors + j), sums[s]);
  }
}

template <class V, int kVectors>
struct Sums {
  typename V::Floats at[kVectors];
  void start(bool from_zero, const float* from) {
    for (std::size_t j = 0; j < kVectors; ++j) at[j] = from_zero ? V::zero() : V::load(from + V::kWidth * j);
  }
  void store(float* to) const {
    for (std::size_t j = 0; j < kVectors; ++j) V::store(to + V::kWidth * j, at[j]);
  }
  void add(const float* table, std::size_t subset) {
    const float* from = table + subset * (V::kWidth * kVectors);
    asm("" : "+r"(from));  // one address for all loads: left alone, the compiler makes one of each
#pragma GCC unroll 8
    for (std::size_t j = 0; j < kVectors; ++j) at[j] = V::add(at[j], V::load(from + V::kWidth * j));
  }
  void scale(float factor) {
    for (std::size_t j = 0; j < kVectors; ++j) at[j] = V::mul(at[j], V::all(factor));
  }
  void keep_where_positive(const float* mask) {
    for (std::size_t j = 0; j < kVectors; ++j)
      at[j] = V::where(V::positive(V::load(mask + V::kWidth * j)), at[j]);
  }
};

template <class V, int kVectors>
constexpr std::size_t kTableStep =
    16 * kVectors* V::kWidth;  // floats of the subset sums of one group of four rows

// Rows i .. i + kRows of columns from n on, for the bytes first .. last of their bits (each serves
// two groups). Several rows side by side hide the latency of the additions.
template <class V, int kVectors, int kRows>
inline void backward_hidden_tile(const BackwardHidden& op, std::size_t n, std::size_t first, std::size_t last,
                                 std::size_t i) {
  const std::size_t num_bytes = op.cols / 8;
  Sums<V, kVectors> sums[kRows];
  for (int r = 0; r < kRows; ++r) sums[r].start(first == 0, op.diff_src + (i + r) * op.ld + n);
  const std::uint8_t* bytes = op.active.by_row + i * num_bytes;
  const float* table = op.table;
  for (std::size_t byte = first; byte < last; ++byte, table += 2 * kTableStep<V, kVectors>) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const std::size_t bits = bytes[r * num_bytes + byte];
      sums[r].add(table, bits & 15);
      sums[r].add(table + kTableStep<V, kVectors>, bits >> 4);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    if (last == num_bytes) {
      sums[r].scale(op.diff_logits[i + r]);
      sums[r].keep_where_positive(op.src + (i + r) * op.ld + n);
    }
    sums[r].store(op.diff_src + (i + r) * op.ld + n);
  }
}

// Columns from n on of diff_src; a group is four rows of weights_t.
template <class V, int kVectors>
void backward_hidden_columns(const BackwardHidden& op, std::size_t n) {
  const std::size_t num_bytes = op.cols / 8;
  const std::size_t num_chunks = divided_up(num_bytes, V::kTableFloats / (2 * kTableStep<V, kVectors>));
  for (std::size_t chunk = 0; chunk < num_chunks; ++chunk) {
    const std::size_t first = num_bytes * chunk / num_chunks;
    const std::size_t last = num_bytes * (chunk + 1) / num_chunks;
    for (std::size_t k = 8 * first; k < 8 * last; k += 4) {
      const float* row = op.weights_t + k * op.ld + n;
      const float* const rows[4] = {row, row + op.ld, row + 2 * op.ld, row + 3 * op.ld};
      subset_sums<V, kVectors>(rows, op.weights + k,
                               op.table + (k / 4 - 2 * first) * kTableStep<V, kVectors>);
    }
    std::size_t i = 0;
    constexpr int kRows = V::kMaskedRows;
    for (; i + kRows <= op.rows; i += kRows) backward_hidden_tile<V, kVectors, kRows>(op, n, first, last, i);
    for (; i < op.rows; ++i) backward_hidden_tile<V, kVectors, 1>(op, n, first, last, i);
  }
}

// Rows k .. k + V::kMaskedRows of columns from n on, for the groups first .. last.
template <class V, int kVectors>
inline void hidden_weight_gradient_tile(const HiddenWeightGradient& op, std::size_t n, std::size_t first,
                                        std::size_t last, std::size_t k) {
  constexpr int kRows = V::kMaskedRows;
  Sums<V, kVectors> sums[kRows];
  for (int r = 0; r < kRows; ++r) sums[r].start(first == 0, op.diff_weights_t + (k + r) * op.ld + n);
  const std::int32_t* bits = op.active.by_column + first * op.ld + k;
  const float* table = op.table;
  for (std::size_t group = first; group < last; ++group, bits += op.ld, table += kTableStep<V, kVectors>) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[r].add(table, static_cast<std::size_t>(bits[r]));
  }
  for (int r = 0; r < kRows; ++r) {
    if (last == divided_up(op.rows, 4)) sums[r].scale(op.weights[k + r]);
    sums[r].store(op.diff_weights_t + (k + r) * op.ld + n);
  }
}

// Columns from n on of diff_weights_t; a group is four rows of the batch.
template <class V, int kVectors>
void hidden_weight_gradient_columns(const HiddenWeightGradient& op, std::size_t n) {
  const std::size_t num_groups = divided_up(op.rows, 4);
  const std::size_t num_chunks = divided_up(num_groups, V::kTableFloats / kTableStep<V, kVectors>);
  for (std::size_t chunk = 0; chunk < num_chunks; ++chunk) {
    const std::size_t first = num_groups * chunk / num_chunks;
    const std::size_t last = num_groups * (chunk + 1) / num_chunks;
    for (std::size_t group = first; group < last; ++group) {
      const float* rows[4];
      float factor[4];
      for (std::size_t r = 0; r < 4; ++r) {
        const bool exists = 4 * group + r < op.rows;  // beyond the last row no bit is set; any row will do
        rows[r] = op.src + (exists ? 4 * group + r : 0) * op.ld + n;
        factor[r] = exists ? op.diff_logits[4 * group + r] : 0.0f;
      }
      subset_sums<V, kVectors>(rows, factor, op.table + (group - first) * kTableStep<V, kVectors>);
    }
    for (std::size_t k = 0; k < op.cols; k += V::kMaskedRows)
      hidden_weight_gradient_tile<V, kVectors>(op, n, first, last, k);
  }
}

template <class Op>
using PanelFunction = void (*)(const Op&, std::size_t);

// Cuts `cols` into panels of at most as many vectors as there are functions, as even as possible, and calls the function of each
// panel's width.
template <class V, class Op, std::size_t kMost>
void for_each_panel(const Op& op, const PanelFunction<Op> (&by_vectors)[kMost]) {
  std::size_t vectors = op.cols / V::kWidth;
  std::size_t n = 0;
  for (std::size_t panels = (vectors + kMost - 1) / kMost; panels > 0; --panels) {
    const std::size_t width = (vectors + panels - 1) / panels;
    by_vectors[width - 1](op, n);
    n += width * V::kWidth;
    vectors -= width;
  }
}

template <class V>
void backward_logits(const BackwardLogits& op) {
  std::size_t n = 0;
  for (; n + 4 * V::kWidth <= op.cols; n += 4 * V::kWidth) backward_logits_columns<V, 4>(op, n);
  for (; n < op.cols; n += V::kWidth) backward_logits_columns<V, 1>(op, n);
}

template <class V>
void backward_hidden(const BackwardHidden& op) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    static constexpr PanelFunction<BackwardHidden> kByVectors[] = {backward_hidden_columns<V, I + 1>...};
    for_each_panel<V>(op, kByVectors);
  }
  (std::make_index_sequence<V::kMaskedVectors>());
}

template <class V>
void hidden_weight_gradient(const HiddenWeightGradient& op) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    static constexpr PanelFunction<HiddenWeightGradient> kByVectors[] = {
        hidden_weight_gradient_columns<V, I + 1>...};
    for_each_panel<V>(op, kByVectors);
  }
  (std::make_index_sequence<V::kMaskedVectors>());
}

}  // namespace
}  // namespace nrec::small_mlp
