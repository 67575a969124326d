#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nrec::simulation {

// The last 4 kB of an endless text, in constant memory.
class MessageTail {
 public:
  static constexpr std::size_t kBytes = 4096;

  void add(std::string_view bytes);
  void forget() { kept_.clear(), is_cut_ = false; }
  // Whole lines where possible, printable.
  std::string text() const;

 private:
  std::string kept_;
  bool is_cut_ = false;
};

// Whether there is nothing but what numbers in decimal text are made of.
bool is_numbers_only(std::string_view bytes);

}  // namespace nrec::simulation
