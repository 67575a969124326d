#pragma once

#include <immintrin.h>

#include <cstddef>

#include "nrec/kernels/pair_kernels.h"

namespace nrec {
namespace {  // every file that includes this has its own, compiled with its own flags

/// Fetches an Ahead into the second cache, some of it at each of about `parts` calls of some(), what is left at rest().
class Fetch {
 public:
  Fetch(const Ahead* ahead, std::size_t parts)
      : ahead_(ahead),
        floats_(ahead ? ahead->floats : 0),
        step_((floats_ / (parts ? parts : 1) / kLine + 1) * kLine) {}

  void some() { to(at_ + step_ < floats_ ? at_ + step_ : floats_); }
  void rest() { to(floats_); }

 private:
  void to(std::size_t end) {
    for (; at_ < end; at_ += kLine) {
      for (int i = 0; i < ahead_->count; ++i)
        _mm_prefetch(reinterpret_cast<const char*>(ahead_->start[i] + at_), _MM_HINT_T1);
    }
  }

  static constexpr std::size_t kLine = 64 / sizeof(float);
  const Ahead* ahead_;
  std::size_t floats_, step_, at_ = 0;
};

}  // namespace
}  // namespace nrec
