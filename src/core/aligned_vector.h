#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace nrec {

/// Memory that starts at a cache line: a vector of registers that crosses two lines costs two loads, and the standard
/// allocator starts 16 bytes into a line.
template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kCacheLine{64};

  CacheLineAllocator() = default;
  template <class U>
  explicit(false) CacheLineAllocator(const CacheLineAllocator<U>&) {}

  T* allocate(std::size_t n) {
    if (n > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(::operator new(n * sizeof(T), kCacheLine));
  }
  void deallocate(T* p, std::size_t n) { ::operator delete(p, n * sizeof(T), kCacheLine); }
  bool operator==(const CacheLineAllocator&) const = default;
};

/// A vector for the kernels' matrices.
template <class T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace nrec
