#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace nrec {

/// Memory for CacheLineAllocator. What has many pages is asked for in huge ones: going through gigabytes would otherwise wait for
/// the addresses of small pages as much as for memory. Errors: std::bad_alloc.
void* allocate_lines(std::size_t bytes);
void free_lines(void* start, std::size_t bytes) noexcept;

/// Memory that starts at a cache line: a vector of registers that crosses two lines costs two loads, and the standard
/// allocator starts 16 bytes into a line.
template <class T>
struct CacheLineAllocator {
  using value_type = T;

  CacheLineAllocator() = default;
  template <class U>
  explicit(false) CacheLineAllocator(const CacheLineAllocator<U>&) {}

  T* allocate(std::size_t n) {
    if (n > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_lines(n * sizeof(T)));
  }
  void deallocate(T* p, std::size_t n) { free_lines(p, n * sizeof(T)); }
  bool operator==(const CacheLineAllocator&) const = default;
};

/// A vector for the kernels' matrices.
template <class T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace nrec
