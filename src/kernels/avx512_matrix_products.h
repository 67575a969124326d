#pragma once

#include <cstddef>

#include "nrec/kernels/pair_kernels.h"

namespace nrec::avx512 {

// Entries of the table of pair kernels: nrec/kernels/pair_kernels.h says what each does.

void gemm(const float* a, std::size_t lda, std::size_t m, std::size_t k, const float* packed, std::size_t n,
          const float* bias, const float* add, float* c, std::size_t ldc, const Ahead* ahead);
void gemm_weights(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                  std::size_t k, std::size_t n, float* dw, std::size_t ldw);

}  // namespace nrec::avx512
