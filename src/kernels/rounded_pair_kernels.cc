// bf16 operands by rounding in software, on the products of another table: slower than float32, but the numbers of AMX (to the order of
// sums) on any machine.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/packed_panels.h"
#include "kernels/pair_kernels_isa.h"

namespace nrec::rounded {
namespace {

constexpr std::size_t kRows = 48;  // that are rounded at once, where they fit
/// Of rounded operands on the stack: some rows of the most features that a network may have.
constexpr std::size_t kMostNumbers = 1U << 15;

/// To the nearest bfloat16, ties to even, as VCVTNE2PS2BF16 does: subnormal numbers are zeros, NaN stays NaN.
inline float to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U;
  if (magnitude < 0x00800000U) rounded = bits & 0x80000000U;
  if (magnitude > 0x7f800000U) rounded = (bits | 0x00400000U) & 0xffff0000U;
  return std::bit_cast<float>(rounded);
}

void round_rows(const float* a, std::size_t lda, std::size_t rows, std::size_t columns, float* out) {
  for (std::size_t r = 0; r < rows; ++r, a += lda, out += columns) {
    for (std::size_t c = 0; c < columns; ++c) out[c] = to_bf16(a[c]);
  }
}

/// Rows of `columns` numbers that fit on the stack, kRows at most; features of a network are few enough for one at least.
inline std::size_t rows_that_fit(std::size_t columns) {
  return columns == 0 || kMostNumbers / columns > kRows ? kRows : kMostNumbers / columns;
}

using Table = const PairKernels& (*)();

template <Table kBase>
void pack(const float* w, std::size_t ldw, std::size_t k, std::size_t n, float* packed) {
  kBase().inputs.pack(w, ldw, k, n, packed);
  const std::size_t floats = PackedPanels(n).floats(k);
  round_rows(packed, floats, 1, floats, packed);
}

template <Table kBase>
void pack_transposed(const float* w, std::size_t ldw, std::size_t k, std::size_t n, float* packed) {
  kBase().inputs.pack_transposed(w, ldw, k, n, packed);
  const std::size_t floats = PackedPanels(k).floats(n);
  round_rows(packed, floats, 1, floats, packed);
}

template <Table kBase>
void gemm(const float* a, std::size_t lda, std::size_t m, std::size_t k, const float* packed, std::size_t n,
          const float* bias, const float* add, float* c, std::size_t ldc, const Ahead*) {
  alignas(64) float left[kMostNumbers];
  const std::size_t step = rows_that_fit(k);
  for (std::size_t first = 0; first < m; first += step) {
    const std::size_t rows = m - first < step ? m - first : step;
    round_rows(a + first * lda, lda, rows, k, left);
    kBase().inputs.gemm(left, k, rows, k, packed, n, bias, add ? add + first * ldc : nullptr, c + first * ldc,
                        ldc, nullptr);
  }
}

template <Table kBase>
void gemm_weights(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                  std::size_t k, std::size_t n, float* dw, std::size_t ldw) {
  alignas(64) float both[kMostNumbers];
  const std::size_t width = padded_features(n), step = rows_that_fit(k + width);
  for (std::size_t first = 0; first < m; first += step) {
    const std::size_t rows = m - first < step ? m - first : step;
    float* right = both + rows * k;
    round_rows(a + first * lda, lda, rows, k, both);
    round_rows(d + first * ldd, ldd, rows, width, right);
    kBase().inputs.gemm_weights(both, k, right, width, rows, k, n, dw, ldw);
  }
}

// Operands of a RoundedLayer: rows of 16-bit numbers, without padding.

void keep_rows(const float* a, std::size_t lda, std::size_t rows, std::size_t first, std::size_t columns,
               float* operand) {
  auto* out = reinterpret_cast<unsigned char*>(operand) + first * columns * sizeof(std::uint16_t);
  for (std::size_t r = 0; r < rows; ++r, a += lda) {
    for (std::size_t c = 0; c < columns; ++c, out += sizeof(std::uint16_t)) {
      const auto bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(to_bf16(a[c])) >> 16);
      std::memcpy(out, &bits, sizeof bits);
    }
  }
}

void kept_rows(const float* operand, std::size_t first, std::size_t rows, std::size_t columns, float* out) {
  const auto* from =
      reinterpret_cast<const unsigned char*>(operand) + first * columns * sizeof(std::uint16_t);
  for (std::size_t i = 0; i < rows * columns; ++i, from += sizeof(std::uint16_t)) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from, sizeof bits);
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
}

void nothing() {}

template <Table kBase>
void round_affine_relu(const float* z, std::size_t count, std::size_t first, std::size_t,
                       std::size_t features, std::size_t width, const float* scale, const float* shift,
                       float* operand) {
  alignas(64) float a[kMostNumbers];
  for (std::size_t r = 0; r < count; ++r) {
    kBase().affine_relu(z + r * width, 1, width, scale, shift, a);
    keep_rows(a, width, 1, first + r, features, operand);
  }
}

template <Table kBase>
void round_layer_norm_relu(const float* z, std::size_t count, std::size_t first, std::size_t,
                           std::size_t features, std::size_t width, float eps, const float* gain,
                           const float* shift, float* mean, float* rstd, float* normalised, float* operand) {
  alignas(64) float a[kMostNumbers];
  for (std::size_t r = 0; r < count; ++r) {
    kBase().layer_norm_moments(z + r * width, 1, width, features, eps, mean + r, rstd + r);
    for (std::size_t c = 0; normalised && c < width; ++c)
      normalised[r * width + c] = (z[r * width + c] - mean[r]) * rstd[r];
    kBase().layer_norm_relu(z + r * width, 1, width, features, gain, shift, mean + r, rstd + r, a);
    keep_rows(a, width, 1, first + r, features, operand);
  }
}

void keep(const float* operand, std::size_t rows, std::size_t first, std::size_t, std::size_t features,
          std::size_t width, float* kept, std::uint32_t* mask) {
  const auto* from = reinterpret_cast<const unsigned char*>(operand);
  std::memcpy(reinterpret_cast<unsigned char*>(kept) + first * features * sizeof(std::uint16_t), from,
              rows * features * sizeof(std::uint16_t));
  if (!mask) return;
  const std::size_t words = mask_words(width);
  for (std::size_t i = 0; i < rows * words; ++i) mask[i] = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < features; ++c, from += sizeof(std::uint16_t)) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, from, sizeof bits);
      if ((bits & 0x7fffU) != 0) mask[r * words + c / 32] |= 1U << c % 32;
    }
  }
}

void relu_backward(const std::uint32_t* mask, std::size_t rows, std::size_t width, float* d, float* dz) {
  const std::size_t words = mask_words(width);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < width; ++c) {
      float& value = d[r * width + c];
      if ((mask[r * words + c / 32] >> c % 32 & 1U) == 0) value = 0.0f;
      if (dz) dz[r * width + c] += value;
    }
  }
}

void round_gradient(const float* d, std::size_t ldd, std::size_t count, std::size_t first, std::size_t,
                    std::size_t width, std::size_t start, float* left, float* right, float* db) {
  keep_rows(d, ldd, count, first - start, width, left);
  keep_rows(d, ldd, count, first, width, right);
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t c = 0; c < width; ++c) db[c] += d[r * ldd + c];
  }
}

/// C = A B + bias + add of rows of A that were kept.
template <Table kBase>
void multiply_kept(const float* operand, std::size_t rows, std::size_t columns, std::size_t depth,
                   const float* packed, std::size_t n, const float* bias, const float* add, float* c,
                   std::size_t ldc) {
  alignas(64) float left[kMostNumbers];
  const std::size_t step = rows_that_fit(columns);
  for (std::size_t r = 0; r < rows; r += step) {
    const std::size_t some = rows - r < step ? rows - r : step;
    kept_rows(operand, r, some, columns, left);
    kBase().inputs.gemm(left, columns, some, depth, packed, n, bias, add ? add + r * ldc : nullptr,
                        c + r * ldc, ldc, nullptr);
  }
}

template <Table kBase>
void forward(const float* operand, std::size_t rows, std::size_t features, const float* packed, std::size_t,
             const float* bias, const float* add, float* c, std::size_t ldc, const Ahead*) {
  multiply_kept<kBase>(operand, rows, features, features, packed, features, bias, add, c, ldc);
}

template <Table kBase>
void backward(const float* left, std::size_t rows, std::size_t features, std::size_t width,
              const float* packed_transposed, float* e, std::size_t lde, const Ahead*) {
  multiply_kept<kBase>(left, rows, width, features, packed_transposed, features, nullptr, nullptr, e, lde);
}

template <Table kBase>
void weights(const float* kept, const float* right, std::size_t m, std::size_t features, std::size_t width,
             float* dw, const Ahead*) {
  alignas(64) float both[kMostNumbers];
  const std::size_t step = rows_that_fit(features + width);
  for (std::size_t first = 0; first < m; first += step) {
    const std::size_t rows = m - first < step ? m - first : step;
    kept_rows(kept, first, rows, features, both);
    kept_rows(right, first, rows, width, both + rows * features);
    kBase().inputs.gemm_weights(both, features, both + rows * features, width, rows, features, features, dw,
                                width);
  }
}

template <Table kBase>
PairKernels make_table(const char* name) {
  PairKernels table = kBase();
  table.name = name;
  table.hidden = {pack<kBase>, pack_transposed<kBase>, gemm<kBase>, gemm_weights<kBase>};
  static constexpr RoundedLayer rounded = {
      nothing,        nothing, nothing,        round_affine_relu<kBase>, round_layer_norm_relu<kBase>,
      forward<kBase>, keep,    round_gradient, backward<kBase>,          relu_backward,
      weights<kBase>};
  table.rounded = &rounded;
  return table;
}

}  // namespace

const PairKernels& ref_table() {
  static const PairKernels table = make_table<ref::pair_kernels_table>("ref_bf16");
  return table;
}

#if defined(__x86_64__)
const PairKernels& avx2_table() {
  static const PairKernels table = make_table<avx2::pair_kernels_table>("avx2_bf16");
  return table;
}
#endif

}  // namespace nrec::rounded
