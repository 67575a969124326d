#pragma once

#include <immintrin.h>

#include <cstddef>

#include "nrec/kernels/pair_kernels.h"

namespace nrec {
namespace {  // every file that includes this has its own, compiled with its own flags

/// Fetches a share of an Ahead into the second cache, some of it at each of about `parts` calls of some(), what is left at rest().
class Fetch {
 public:
  Fetch(const Ahead* ahead, std::size_t parts) : ahead_(ahead) {
    if (!ahead) return;
    at_ = ahead->fetched;
    const std::size_t share = lines(ahead->floats, static_cast<std::size_t>(ahead->shares));
    end_ = at_ + share < ahead->floats ? at_ + share : ahead->floats;
    step_ = lines(end_ - at_, parts);
  }

  void some() { to(at_ + step_ < end_ ? at_ + step_ : end_); }
  void rest() {
    to(end_);
    if (ahead_) ahead_->fetched = end_;
  }

 private:
  static constexpr std::size_t kLine = 64 / sizeof(float);
  /// A part of `floats`, in whole lines.
  static std::size_t lines(std::size_t floats, std::size_t parts) {
    return (floats / (parts ? parts : 1) / kLine + 1) * kLine;
  }
  void to(std::size_t end) {
    for (; at_ < end; at_ += kLine) {
      for (int i = 0; i < ahead_->count; ++i)
        _mm_prefetch(reinterpret_cast<const char*>(ahead_->start[i] + at_), _MM_HINT_T1);
    }
  }

  const Ahead* ahead_;
  std::size_t at_ = 0, end_ = 0, step_ = 0;
};

}  // namespace
}  // namespace nrec
