#include "core/aligned_vector.h"

#include <sys/mman.h>

namespace nrec {

namespace {

constexpr std::align_val_t kCacheLine{64};
constexpr std::size_t kHugePage = std::size_t{2} << 20;
/// From here on memory comes in whole huge pages. They also lie in one piece for the second cache, which a thread's working memory of a
/// megabyte nearly fills.
constexpr std::size_t kManyPages = kHugePage / 4;

bool is_large(std::size_t bytes) { return bytes >= kManyPages; }
std::align_val_t start_of(std::size_t bytes) {
  return is_large(bytes) ? std::align_val_t{kHugePage} : kCacheLine;
}

}  // namespace

void* allocate_lines(std::size_t bytes) {
  if (!is_large(bytes)) return ::operator new(bytes, kCacheLine);
  if (bytes > static_cast<std::size_t>(-1) - kHugePage) throw std::bad_alloc();
  const std::size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* start = ::operator new(whole, start_of(bytes));
#ifdef MADV_HUGEPAGE
  // A wish: where it is not granted, pages are small.
  (void)madvise(start, whole, MADV_HUGEPAGE);
#endif
  return start;
}

void free_lines(void* start, std::size_t bytes) noexcept { ::operator delete(start, start_of(bytes)); }

}  // namespace nrec
