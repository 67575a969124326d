// bf16 operands by rounding in software, on the products of another table: slower than float32, but the numbers of AMX (to the order of
// sums) on any machine.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/pair_kernels_isa.h"

namespace nrec::rounded {
namespace {

constexpr std::size_t kRows = 48;               // that are rounded at once, where they fit
constexpr std::size_t kMostNumbers = 1U << 15;  // of rounded operands on the stack

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
void pack(const float* w, std::size_t k, std::size_t n, float* packed) {
  kBase().inputs.pack(w, k, n, packed);
  round_rows(packed, k * n, 1, k * n, packed);
}

template <Table kBase>
void pack_transposed(const float* w, std::size_t ldw, std::size_t k, std::size_t n, float* packed) {
  kBase().inputs.pack_transposed(w, ldw, k, n, packed);
  round_rows(packed, k * n, 1, k * n, packed);
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
                  std::size_t k, std::size_t n, float* dw) {
  alignas(64) float both[kMostNumbers];
  const std::size_t step = rows_that_fit(k + n);
  for (std::size_t first = 0; first < m; first += step) {
    const std::size_t rows = m - first < step ? m - first : step;
    float* right = both + rows * k;
    round_rows(a + first * lda, lda, rows, k, both);
    round_rows(d + first * ldd, ldd, rows, n, right);
    kBase().inputs.gemm_weights(both, k, right, n, rows, k, n, dw);
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

void round(const float* a, std::size_t lda, std::size_t rows, std::size_t first, std::size_t, std::size_t k,
           float* operand) {
  keep_rows(a, lda, rows, first, k, operand);
}

void round_gradient(const float* d, std::size_t ldd, std::size_t rows, std::size_t first, std::size_t,
                    std::size_t n, float* work, float* db) {
  keep_rows(d, ldd, rows, first, n, work);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < n; ++c) db[c] += d[r * ldd + c];
  }
}

template <Table kBase>
void forward(const float* operand, std::size_t m, std::size_t k, const float* packed, std::size_t n,
             const float* bias, const float* add, float* c, std::size_t ldc, const Ahead*) {
  alignas(64) float left[kMostNumbers];
  const std::size_t step = rows_that_fit(k);
  for (std::size_t first = 0; first < m; first += step) {
    const std::size_t rows = m - first < step ? m - first : step;
    kept_rows(operand, first, rows, k, left);
    kBase().inputs.gemm(left, k, rows, k, packed, n, bias, add ? add + first * ldc : nullptr, c + first * ldc,
                        ldc, nullptr);
  }
}

template <Table kBase>
void backward(const float* operand, std::size_t m, std::size_t features, std::size_t width,
              const float* packed_transposed, float* dw, float* e, std::size_t lde, float* work,
              const Ahead*) {
  alignas(64) float both[kMostNumbers];
  const std::size_t step = rows_that_fit(features + width);
  for (std::size_t first = 0; first < m; first += step) {
    const std::size_t rows = m - first < step ? m - first : step;
    float* right = both + rows * features;
    kept_rows(operand, first, rows, features, both);
    kept_rows(work, first, rows, width, right);
    kBase().inputs.gemm_weights(both, features, right, width, rows, features, width, dw);
    kBase().inputs.gemm(right, width, rows, features, packed_transposed, width, nullptr, nullptr,
                        e + first * lde, lde, nullptr);
  }
}

template <Table kBase>
PairKernels make_table(const char* name) {
  PairKernels table = kBase();
  table.name = name;
  table.hidden = {pack<kBase>, pack_transposed<kBase>, gemm<kBase>, gemm_weights<kBase>};
  static constexpr RoundedLayer rounded = {nothing,        nothing,        round,
                                           forward<kBase>, round_gradient, backward<kBase>};
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
