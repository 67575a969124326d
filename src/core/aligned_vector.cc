#include "core/aligned_vector.h"

#include <sys/mman.h>

namespace nrec {

namespace {

constexpr std::align_val_t kCacheLine{64};
constexpr std::align_val_t kHugePage{std::size_t{2} << 20};
constexpr std::size_t kManyPages = 4 * static_cast<std::size_t>(kHugePage);

std::align_val_t start_of(std::size_t bytes) { return bytes < kManyPages ? kCacheLine : kHugePage; }

}  // namespace

void* allocate_lines(std::size_t bytes) {
  void* start = ::operator new(bytes, start_of(bytes));
#ifdef MADV_HUGEPAGE
  // A wish: where it is not granted, pages are small.
  if (bytes >= kManyPages) (void)madvise(start, bytes, MADV_HUGEPAGE);
#endif
  return start;
}

void free_lines(void* start, std::size_t bytes) noexcept { ::operator delete(start, bytes, start_of(bytes)); }

}  // namespace nrec
