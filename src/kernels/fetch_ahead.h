#pragma once

#include <immintrin.h>

#include <cstddef>

#include "nrec/kernels/pair_kernels.h"

namespace nrec {
namespace {  // every file that includes this has its own, compiled with its own flags

/// Fetches an Ahead into the second cache in equal parts, one for each of `calls` parts of a product.
class Fetch {
 public:
  Fetch(const Ahead* ahead, std::size_t calls)
      : ahead_(ahead), floats_(ahead ? ahead->floats : 0), step_((floats_ / calls / kLine + 1) * kLine) {}

  void some() {
    const std::size_t end = at_ + step_ < floats_ ? at_ + step_ : floats_;
    for (; at_ < end; at_ += kLine) {
      for (int i = 0; i < ahead_->count; ++i)
        _mm_prefetch(reinterpret_cast<const char*>(ahead_->start[i] + at_), _MM_HINT_T1);
    }
  }

 private:
  static constexpr std::size_t kLine = 64 / sizeof(float);
  const Ahead* ahead_;
  std::size_t floats_, step_, at_ = 0;
};

}  // namespace
}  // namespace nrec
