// The operations around the output layer, as products with a 0/1 matrix: see ActiveBits. Flags and rules as
// in small_mlp_avx2.cc.

#include <immintrin.h>

#include "kernels/small_mlp/small_mlp_avx2.h"
#include "kernels/small_mlp/small_mlp_kernels.h"

namespace nrec::small_mlp::avx2 {
namespace {

constexpr std::size_t divided_up(std::size_t count, std::size_t step) { return (count + step - 1) / step; }

// Four rows at a time, because by_column packs four rows into one number; rows beyond the last count as
// inactive.
template <int kVectors>
inline void backward_logits_columns(const BackwardLogits& op, std::size_t n) {
  const __m256 zero = _mm256_setzero_ps();
  __m256 weight_sum[kVectors], active_sum[kVectors];
  for (int j = 0; j < kVectors; ++j) weight_sum[j] = active_sum[j] = zero;
  for (std::size_t i = 0; i < op.rows; i += 4) {
    __m256i bits[kVectors];
    for (int j = 0; j < kVectors; ++j) bits[j] = _mm256_setzero_si256();
    const std::size_t count = op.rows - i < 4 ? op.rows - i : 4;
    for (std::size_t r = 0; r < count; ++r) {
      const __m256 diff_logit = _mm256_broadcast_ss(op.diff_logits + i + r);
      const __m256i bit = _mm256_set1_epi32(1 << r);
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) {
        const __m256 dst = _mm256_load_ps(op.dst + (i + r) * op.ld + n + 8 * j);
        const __m256 active = _mm256_cmp_ps(dst, zero, _CMP_GT_OQ);
        op.active.by_row[(i + r) * (op.cols / 8) + n / 8 + j] =
            static_cast<std::uint8_t>(_mm256_movemask_ps(active));
        bits[j] = _mm256_or_si256(bits[j], _mm256_and_si256(_mm256_castps_si256(active), bit));
        active_sum[j] = _mm256_add_ps(active_sum[j], _mm256_and_ps(diff_logit, active));
        weight_sum[j] = _mm256_fmadd_ps(dst, diff_logit, weight_sum[j]);
      }
    }
    for (int j = 0; j < kVectors; ++j) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(op.active.by_column + i / 4 * op.ld + n + 8 * j),
                         bits[j]);
    }
  }
  for (int j = 0; j < kVectors; ++j) {
    _mm256_store_ps(op.diff_weights + n + 8 * j, weight_sum[j]);
    _mm256_store_ps(op.diff_bias + n + 8 * j,
                    _mm256_mul_ps(active_sum[j], _mm256_load_ps(op.weights + n + 8 * j)));
  }
}

// table[s] = sum of factor[r] rows[r] over the bits r of s, for kVectors vectors of columns; 16 kVectors
// vectors.
template <int kVectors>
inline void subset_sums(const float* const rows[4], const float factor[4], float* table) {
  for (int j = 0; j < kVectors; ++j) {
    __m256 sums[16];
    sums[0] = _mm256_setzero_ps();
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const __m256 row = _mm256_mul_ps(_mm256_set1_ps(factor[r]), _mm256_load_ps(rows[r] + 8 * j));
#pragma GCC unroll 8
      for (int s = 0; s < 1 << r; ++s) sums[(1 << r) + s] = _mm256_add_ps(sums[s], row);
    }
#pragma GCC unroll 16
    for (int s = 0; s < 16; ++s) _mm256_store_ps(table + 8 * (s * kVectors + j), sums[s]);
  }
}

template <int kVectors>
struct Sums {
  __m256 at[kVectors];
  void start(bool from_zero, const float* from) {
    for (int j = 0; j < kVectors; ++j) at[j] = from_zero ? _mm256_setzero_ps() : _mm256_load_ps(from + 8 * j);
  }
  void store(float* to) const {
    for (int j = 0; j < kVectors; ++j) _mm256_store_ps(to + 8 * j, at[j]);
  }
  void add(const float* table, std::size_t subset) {
    const float* from = table + subset * (8 * kVectors);
    asm("" : "+r"(from));  // one address for all loads: left alone, the compiler makes one of each
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) at[j] = _mm256_add_ps(at[j], _mm256_load_ps(from + 8 * j));
  }
  void scale(float factor) {
    for (int j = 0; j < kVectors; ++j) at[j] = _mm256_mul_ps(at[j], _mm256_set1_ps(factor));
  }
  void keep_where_positive(const float* mask) {
    for (int j = 0; j < kVectors; ++j) {
      at[j] =
          _mm256_and_ps(at[j], _mm256_cmp_ps(_mm256_load_ps(mask + 8 * j), _mm256_setzero_ps(), _CMP_GT_OQ));
    }
  }
};

template <int kVectors>
constexpr std::size_t kTableStep =
    16 * kVectors* kLanes;  // floats of the subset sums of one group of four rows

// Rows i .. i + kRows of columns n .. n + 8 kVectors, for the bytes first .. last of their bits (each serves
// two groups). Two rows side by side hide the latency of the additions.
template <int kVectors, int kRows>
inline void backward_hidden_tile(const BackwardHidden& op, std::size_t n, std::size_t first, std::size_t last,
                                 std::size_t i) {
  const std::size_t num_bytes = op.cols / 8;
  Sums<kVectors> sums[kRows];
  for (int r = 0; r < kRows; ++r) sums[r].start(first == 0, op.diff_src + (i + r) * op.ld + n);
  const std::uint8_t* bytes = op.active.by_row + i * num_bytes;
  const float* table = op.table;
  for (std::size_t byte = first; byte < last; ++byte, table += 2 * kTableStep<kVectors>) {
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) {
      const std::size_t bits = bytes[r * num_bytes + byte];
      sums[r].add(table, bits & 15);
      sums[r].add(table + kTableStep<kVectors>, bits >> 4);
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

// Columns n .. n + 8 kVectors of diff_src; a group is four rows of weights_t.
template <int kVectors>
void backward_hidden_columns(const BackwardHidden& op, std::size_t n) {
  const std::size_t num_bytes = op.cols / 8;
  const std::size_t num_chunks = divided_up(num_bytes, kTableFloats / (2 * kTableStep<kVectors>));
  for (std::size_t chunk = 0; chunk < num_chunks; ++chunk) {
    const std::size_t first = num_bytes * chunk / num_chunks;
    const std::size_t last = num_bytes * (chunk + 1) / num_chunks;
    for (std::size_t k = 8 * first; k < 8 * last; k += 4) {
      const float* row = op.weights_t + k * op.ld + n;
      const float* const rows[4] = {row, row + op.ld, row + 2 * op.ld, row + 3 * op.ld};
      subset_sums<kVectors>(rows, op.weights + k, op.table + (k / 4 - 2 * first) * kTableStep<kVectors>);
    }
    std::size_t i = 0;
    for (; i + 2 <= op.rows; i += 2) backward_hidden_tile<kVectors, 2>(op, n, first, last, i);
    for (; i < op.rows; ++i) backward_hidden_tile<kVectors, 1>(op, n, first, last, i);
  }
}

// Rows k, k + 1 of columns n .. n + 8 kVectors, for the groups first .. last.
template <int kVectors>
inline void hidden_weight_gradient_tile(const HiddenWeightGradient& op, std::size_t n, std::size_t first,
                                        std::size_t last, std::size_t k) {
  constexpr int kRows = 2;
  Sums<kVectors> sums[kRows];
  for (int r = 0; r < kRows; ++r) sums[r].start(first == 0, op.diff_weights_t + (k + r) * op.ld + n);
  const std::int32_t* bits = op.active.by_column + first * op.ld + k;
  const float* table = op.table;
  for (std::size_t group = first; group < last; ++group, bits += op.ld, table += kTableStep<kVectors>) {
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) sums[r].add(table, static_cast<std::size_t>(bits[r]));
  }
  for (int r = 0; r < kRows; ++r) {
    if (last == divided_up(op.rows, 4)) sums[r].scale(op.weights[k + r]);
    sums[r].store(op.diff_weights_t + (k + r) * op.ld + n);
  }
}

// Columns n .. n + 8 kVectors of diff_weights_t; a group is four rows of the batch.
template <int kVectors>
void hidden_weight_gradient_columns(const HiddenWeightGradient& op, std::size_t n) {
  const std::size_t num_groups = divided_up(op.rows, 4);
  const std::size_t num_chunks = divided_up(num_groups, kTableFloats / kTableStep<kVectors>);
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
      subset_sums<kVectors>(rows, factor, op.table + (group - first) * kTableStep<kVectors>);
    }
    for (std::size_t k = 0; k < op.cols; k += 2) hidden_weight_gradient_tile<kVectors>(op, n, first, last, k);
  }
}

// Cuts `cols` into panels of at most 5 vectors, as even as possible, and calls the function of each panel's
// width.
template <class Op>
void for_each_panel(const Op& op, void (*const by_vectors[5])(const Op&, std::size_t)) {
  std::size_t vectors = op.cols / kLanes;
  std::size_t n = 0;
  for (std::size_t panels = (vectors + 4) / 5; panels > 0; --panels) {
    const std::size_t width = (vectors + panels - 1) / panels;
    by_vectors[width - 1](op, n);
    n += width * kLanes;
    vectors -= width;
  }
}

}  // namespace

void backward_logits(const BackwardLogits& op) {
  std::size_t n = 0;
  for (; n + 4 * kLanes <= op.cols; n += 4 * kLanes) backward_logits_columns<4>(op, n);
  for (; n < op.cols; n += kLanes) backward_logits_columns<1>(op, n);
}

void backward_hidden(const BackwardHidden& op) {
  static constexpr void (*kByVectors[5])(const BackwardHidden&, std::size_t) = {
      backward_hidden_columns<1>, backward_hidden_columns<2>, backward_hidden_columns<3>,
      backward_hidden_columns<4>, backward_hidden_columns<5>};
  for_each_panel(op, kByVectors);
}

void hidden_weight_gradient(const HiddenWeightGradient& op) {
  static constexpr void (*kByVectors[5])(const HiddenWeightGradient&, std::size_t) = {
      hidden_weight_gradient_columns<1>, hidden_weight_gradient_columns<2>, hidden_weight_gradient_columns<3>,
      hidden_weight_gradient_columns<4>, hidden_weight_gradient_columns<5>};
  for_each_panel(op, kByVectors);
}

}  // namespace nrec::small_mlp::avx2
