#include "simulation/external/message_tail.h"

#include "nrec/core/printable_text.h"

namespace nrec::simulation {

bool is_numbers_only(std::string_view bytes) {
  return bytes.find_first_not_of("0123456789+-.eEnaif \t\r\n") == std::string_view::npos;
}

void MessageTail::add(std::string_view bytes) {
  if (bytes.size() > kBytes) {
    kept_.clear();
    is_cut_ = true;
    bytes.remove_prefix(bytes.size() - kBytes);
  }
  kept_ += bytes;
  if (kept_.size() > 2 * kBytes) {
    kept_.erase(0, kept_.size() - kBytes);
    is_cut_ = true;
  }
}

std::string MessageTail::text() const {
  std::string_view tail = kept_;
  bool is_cut = is_cut_;
  if (tail.size() > kBytes) {
    tail.remove_prefix(tail.size() - kBytes);
    is_cut = true;
  }
  const std::size_t newline = tail.find('\n');
  if (is_cut && newline != std::string_view::npos && newline + 1 < tail.size())
    tail.remove_prefix(newline + 1);
  return printable_text(tail);
}

}  // namespace nrec::simulation
