#pragma once

#include <cstddef>

#include "kernels/fetch_ahead.h"
#include "kernels/packed_panels.h"

namespace nrec {
namespace {  // every file that includes this has its own, compiled with its own flags

// Blocks of rows of a product in float32. Columns::rows<R>(...) computes some columns of R of its rows, from what is packed for them.

/// Rows R, R - 1 .. 1 that are left, or none.
template <class Columns, int R>
inline void gemm_rest(std::size_t rows, const float* a, std::size_t lda, std::size_t k, const float* packed,
                      const float* bias, const float* add, float* c, std::size_t ldc) {
  if (rows == R) {
    Columns::template rows<R>(a, lda, k, packed, bias, add, c, ldc);
  } else if constexpr (R > 1) {
    gemm_rest<Columns, R - 1>(rows, a, lda, k, packed, bias, add, c, ldc);
  }
}

/// All rows, R at a time.
template <class Columns, int R>
void gemm_columns(std::size_t rows, const float* a, std::size_t lda, std::size_t k, const float* packed,
                  const float* bias, const float* add, float* c, std::size_t ldc, Fetch& fetch) {
  std::size_t r = 0;
  for (; r + R <= rows; r += R) {
    fetch.some();
    Columns::template rows<R>(a + r * lda, lda, k, packed, bias, add ? add + r * ldc : nullptr, c + r * ldc,
                              ldc);
  }
  gemm_rest<Columns, R - 1>(rows - r, a + r * lda, lda, k, packed, bias, add ? add + r * ldc : nullptr,
                            c + r * ldc, ldc);
}

/// run(gemm_columns of Last<depths>) for the columns behind whole panels.
template <template <int> class Last, int R, class Run>
inline void for_last_columns(const PackedPanels& panels, const Run& run) {
  switch (panels.last > 0 ? panels.depths : 0) {
    case 2:
      return run(gemm_columns<Last<2>, R>);
    case 4:
      return run(gemm_columns<Last<4>, R>);
    case 8:
      return run(gemm_columns<Last<8>, R>);
    case 16:
      return run(gemm_columns<Last<16>, R>);
    default:
      return;
  }
}

}  // namespace
}  // namespace nrec
